"""Archives of `docker save`: read as an image where they lie, or refused with a declared error."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from archives import new_form, old_form
from layouts import Layout
from tic_manifest.adapters.docker_archive import open_archive
from tic_manifest.errors import TicError
from tic_manifest.stages.verify_image import check_presence, read_image, select

ASKED = "sha256:" + "a1" * 32


class Saved:
    """One file below a folder of its own, replaced for each input."""

    def prepare(self, folder: Path) -> None:
        """Where the file lies."""
        self._file = folder / "image.tar"

    def run(self, data: bytes) -> None:
        """Every document that is read hashes to what names it; nothing but declared errors."""
        if not hasattr(self, "_file"):
            self._file = Path(tempfile.mkdtemp(prefix="tic-fuzz-")) / "image.tar"
        self._file.write_bytes(data)
        try:
            read = read_image(open_archive(self._file, ASKED), ASKED)
            select(read, [one.platform_digest for one in read.images])
            check_presence(read)
        except TicError as error:
            if error.exit_code not in {2, 3, 4}:
                raise
            return
        if not (read.documents or read.presence):
            raise AssertionError("an image with another digest than the one asked for was accepted")

    def seeds(self) -> Iterator[bytes]:
        """Both forms, and each cut short."""
        with tempfile.TemporaryDirectory() as folder:
            layout = Layout(Path(folder) / "layout")
            image = layout.image()
            for form in (old_form, new_form):
                raw = _archive(form(layout, image))
                yield raw
                yield raw[: len(raw) // 2]
                yield raw[: len(raw) - 900]


def _archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue().rstrip(b"\0").ljust(512 * 24, b"\0") + b"\0" * 1024
