"""One zstd frame of bounded content: how listings and RECORDs travel as evidence (docs/adr/0010)."""

from __future__ import annotations

from tic_manifest.errors import RefusedError

LEVEL = 9


def pack(data: bytes) -> bytes:
    """One frame that names its content's length."""
    import zstandard

    return zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(data)


def unpack(packed: bytes, limit: int, where: str) -> bytes:
    """The content of one whole frame of at most `limit` bytes; its length is known before it is unpacked.

    Raises RefusedError SCHEMA.
    """
    import zstandard

    try:
        size = zstandard.get_frame_parameters(packed).content_size
        if size in {zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR} or size > limit:
            raise _refused(where, f"at most {limit} bytes, named in the frame", f"{size} bytes")
        if size == 0:  # the library calls an empty frame one of unknown length
            raise _refused(where, "content", "none")
        data = zstandard.ZstdDecompressor().decompress(packed, allow_extra_data=False)
    except (zstandard.ZstdError, ValueError, MemoryError) as error:
        raise _refused(where, "one whole zstd frame", str(error)) from error
    if len(data) != size:
        raise _refused(where, f"{size} bytes", f"{len(data)} bytes")
    return data


def _refused(where: str, expected: str, actual: str) -> RefusedError:
    return RefusedError("SCHEMA", "not a packed document", where=where, expected=expected, actual=actual)
