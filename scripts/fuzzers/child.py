"""One process that fuzzes one target; libFuzzer ends it when its time is over or an input takes too long."""

from __future__ import annotations

import argparse
import hashlib
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import atheris

with atheris.instrument_imports(include=["tic_manifest", "tarfile", "json"], enable_loader_override=False):
    from fuzzers.targets import TARGETS, Target

MAX_MEMORY_MB = 2048


class Keeper:
    """Runs inputs; keeps the first one of each way to break and says it once."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._target, self._folder = target, folder
        self.found: set[str] = set()

    def run(self, data: bytes) -> None:
        """Run one input; what it does that it must not do is kept and said."""
        try:
            self._target.run(data)
        except BaseException as error:
            self._keep(data, error)

    def _keep(self, data: bytes, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        place = " ".join(f"{Path(one.filename).name}:{one.lineno}" for one in frames)
        said = f"{type(error).__name__} at {place}: {ascii(str(error))[:300]}"
        key = f"{type(error).__name__} {place}"
        if key in self.found:
            return
        self.found.add(key)
        name = hashlib.sha256(data).hexdigest()[:16]
        (self._folder / name).write_bytes(data)
        print(f"FINDING {said} input {self._folder / name}", flush=True)


def main() -> None:
    """Fuzz, or replay one input (exit 1 when it breaks something)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    target = TARGETS[asked.target]
    target.prepare(asked.folder)
    keeper = Keeper(target, asked.keep)
    if asked.replay:
        keeper.run(asked.replay.read_bytes())
        sys.exit(1 if keeper.found else 0)
    _fuzz(keeper, target, asked, asked.folder / "corpus")


def _fuzz(keeper: Keeper, target: Target, asked: argparse.Namespace, corpus: Path) -> None:
    corpus.mkdir()
    for number, data in enumerate(target.seeds()):
        keeper.run(data)
        (corpus / f"seed-{number:03}").write_bytes(data)
    argv = [
        sys.argv[0], str(corpus), f"-seed={asked.seed}", f"-max_total_time={max(1, asked.seconds)}",
        f"-timeout={asked.limit}", f"-rss_limit_mb={MAX_MEMORY_MB}", f"-max_len={target.longest}",
        f"-artifact_prefix={asked.keep}/", "-print_final_stats=1", "-verbosity=0",
    ]  # fmt: skip
    atheris.Setup(argv, keeper.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
