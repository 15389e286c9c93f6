"""A tar archive as a set of files to read from in place: nothing is unpacked, no link leaves the archive."""

from __future__ import annotations

import io
import posixpath
import tarfile
from pathlib import Path
from typing import IO

from tic_manifest.adapters.tar_extended import MAX_HEADER
from tic_manifest.errors import PersonError, RefusedError, UnavailableError

MAX_MEMBERS = 20_000


_EXTENDED = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class BoundedHeader(tarfile.TarInfo):
    """A header whose extended forms are bounded: tarfile reads them whole into memory."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > MAX_HEADER:
            raise tarfile.HeaderError(f"an extended header of {self.size} bytes")
        return super()._proc_member(tarfile_)  # type: ignore[misc, no-any-return]


class TarFiles:
    """Regular members by their plain name; a link to a regular member of the same archive is that member."""

    def __init__(self, path: Path) -> None:
        """Raises PersonError LAYOUT for what is no plain tar archive, RefusedError for a broken one."""
        self.path = path
        self._members: dict[str, tuple[int, int]] = {}
        self._links: dict[str, str] = {}
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise self._unusable("not a plain file")
        try:
            with tarfile.open(path, "r:", tarinfo=BoundedHeader) as archive:
                self._list(archive)
        except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
            raise self._unusable(str(error)) from error
        except OSError as error:
            raise PersonError(
                "LAYOUT", "cannot read the archive", where=str(path), actual=error.strerror or str(error)
            ) from error

    def open(self, name: str) -> IO[bytes] | None:
        """A member for reading; None when absent."""
        found = self._members.get(self._links.get(name, name))
        if found is None:
            return None
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise UnavailableError(
                "RIGHTS", "cannot read", where=str(self.path), actual=str(error)
            ) from error
        return io.BufferedReader(_Part(stream, *found))

    def length(self, name: str) -> int | None:
        """The length of a member in bytes; None when absent."""
        found = self._members.get(self._links.get(name, name))
        return None if found is None else found[1]

    def _list(self, archive: tarfile.TarFile) -> None:
        for count, member in enumerate(archive):
            if count >= MAX_MEMBERS:
                raise self._refused(f"more than {MAX_MEMBERS} members")
            name = self._plain(member.name)
            if name in self._members or name in self._links:
                raise self._refused(f"{name!a} stands twice")
            if member.isreg() and not member.issparse():
                self._members[name] = (member.offset_data, member.size)
            elif member.issym():
                self._links[name] = posixpath.normpath(
                    posixpath.join(posixpath.dirname(name), member.linkname)
                )
            elif not member.isdir():
                raise self._refused(f"{name!a} is neither a file nor a folder")
            archive.members = []  # type: ignore[attr-defined]

    def _plain(self, name: str) -> str:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self._refused(f"{name!a} is absolute or leaves the archive")
        return "/".join(parts)

    def _refused(self, actual: str) -> RefusedError:
        return RefusedError(
            "LAYOUT", "not an archive that every reader reads alike", where=str(self.path), actual=actual
        )

    def _unusable(self, actual: str) -> PersonError | RefusedError:
        if self._members:
            return self._refused(actual[:200])
        return PersonError(
            "LAYOUT", "not a plain tar archive", where=str(self.path), actual=actual[:200],
            expected="what docker save or skopeo copy docker-archive: writes",
            remedy="unpack it first where it is packed",
        )  # fmt: skip


class _Part(io.RawIOBase):
    """One member of the archive; closes the archive's file with itself."""

    def __init__(self, stream: IO[bytes], offset: int, size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size
        stream.seek(offset)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Bytes of the member; 0 at its end."""
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        """Close the archive's file."""
        self._stream.close()
        super().close()
