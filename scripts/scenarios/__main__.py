"""Run every scenario below each DIR, several at once, against local servers.

usage: scripts/run-scenarios [--replay] [--mergeable-null] [-j JOBS] [--only TEXT] [--keep] DIR...

A scenario is a folder with `make`, `command.json`, `expect.json` and, where needed, `up`, `api.json` and
`registry.json`. The last line is `N passed, M failed`. Exit: 0 when all passed and at least one ran, 1 when
one failed or none was found, 2 wrong use. TIC_TIME_SCALE scales waits of the tool and delays of the servers;
it is 0.01 here unless it is set.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from scenarios.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
