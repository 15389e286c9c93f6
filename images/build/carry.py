"""Files of a context as they shall lie in the image: one mode for files, one for folders, one time for all.

usage: carry.py CONTEXT IMAGE

A builder updates in place a context that it was sent before: its folders then have the times of the update.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main(context: Path, image: Path) -> None:
    """Copy the context below IMAGE and settle modes and times."""
    os.umask(0o022)
    shutil.copytree(context, image)
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    for folder, folders, names in os.walk(image, topdown=False):
        for name in names:
            settle(os.path.join(folder, name), 0o644, epoch)
        for name in folders:
            settle(os.path.join(folder, name), 0o755, epoch)


def settle(path: str, mode: int, epoch: int) -> None:
    """Set mode and time."""
    os.chmod(path, mode)
    os.utime(path, (epoch, epoch))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
