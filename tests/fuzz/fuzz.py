# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of one parser (tests/fuzz/targets.py) with Atheris.

    python tests/fuzz/fuzz.py NAME [--seconds N | --runs N] [--seed N]

Inputs that reach new code are kept in build/fuzz/NAME and used again by the next call.  One that is a fault is written
to build/fuzz/NAME-crash-…, with the traceback on stderr, and the exit code is not 0.  Put it into
tests/fuzz/found/NAME/ once the fault is fixed: the tests run all of those.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[2]
SLOW_S = 120
MAX_BYTES = 20_000

sys.path.insert(0, str(ROOT))
with atheris.instrument_imports(include=["testctl", "testctl_agent"]):
    from tests.fuzz import targets


def corpus(name: str) -> Path:
    """The inputs so far, the right ones among them."""
    directory = ROOT / "build" / "fuzz" / name
    directory.mkdir(parents=True, exist_ok=True)
    for seed in targets.TARGETS[name].seeds():
        (directory / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    return directory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(targets.TARGETS))
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument("--seconds", type=int, default=60)
    how_long.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    given = parser.parse_args()
    directory = corpus(given.name)
    limit = f"-runs={given.runs}" if given.runs else f"-max_total_time={given.seconds}"
    words = [limit, f"-seed={given.seed}", f"-timeout={SLOW_S}", f"-max_len={MAX_BYTES}", "-print_final_stats=1",
             f"-artifact_prefix={directory}-"]  # fmt: skip
    atexit.register(targets.clean)
    atheris.Setup([sys.argv[0], *words, str(directory)], targets.TARGETS[given.name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
