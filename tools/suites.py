# SPDX-License-Identifier: Apache-2.0
"""Runs suites of tests: python tools/suites.py [--changed] SUITE…

core, long, 6.1 (the lab's tests on that kernel), machines (of QEMU), a directory of plugins/; others: all but the core.
--changed leaves out a suite that passed with the files which it has now, and those of the packages that it imports: the
digest of them is in the cache.  What a suite reaches through the command line alone is not seen; `make test-all` runs
every suite.  --minutes begins no suite and no test after that time, and those first that passed longest ago: all get
their turn.  The files of a suite are then in an order that each commit draws anew: so do they.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PASSED = Path(os.environ.get("TESTCTL_CACHE") or Path.home() / ".cache" / "testctl") / "suites"
CORE = ("tests", "plugins/rack/tests/rack/test_smoke.py", "controller/tests", "agents/tests")
"""Those that take longest first: the last files are short ones, so that all processes end at about the same time."""
MACHINES = "plugins/rack/tests/machines"
PINNED = ("constraints.txt", "constraints-dev.txt")
SHARED = ("conftest.py", *PINNED, "pyproject.toml", "lab", "p4", "tools/setup", "tools/suites.py")
"""What every suite depends on."""
PROGRAMS = ("qemu-system-x86_64", "simple_switch", "p4c-bm2-ss", "clang", "packetdrill")
"""Without them tests are skipped, as they are for users other than root."""
NO_TEST = 5
"""pytest's exit code where the marks fit no test."""
UNTIL = "TESTCTL_TESTS_UNTIL"
"""In the environment: when no test begins any more, in seconds since 1970."""
IN_PART = "in part"
"""Instead of the digest, of a suite of which the time allowed a part."""


@dataclass(frozen=True)
class Suite:
    """The tests below `paths`, but not below `ignored`, that an expression of marks (and other arguments) selects."""

    paths: tuple[str, ...]
    marks: str = "not long"
    ignored: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def passes(self, testers: str) -> bool:
        """Run it: first what needs the machine to itself, one test after another, then all others.

        Where the time is limited the others are first: they are most of the tests, and would not get their turn.
        """
        pytest = [sys.executable, "-m", "pytest", *self.paths, *self.arguments]
        pytest += [f"--ignore={self.ignored}"] if self.ignored else []
        parallel = ["-n", testers, "--dist", "loadfile", "--no-loadscope-reorder"]
        # What pytest compiles is kept, whatever the environment says: five processes import all modules of the tests.
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | self.environment
        stages = [["-m", f"alone and {self.marks}"], ["-m", f"not alone and {self.marks}", *parallel]]
        if UNTIL in self.environment:
            stages.reverse()
        codes = [
            subprocess.run([*pytest, *stage], cwd=ROOT, env=environment, check=False).returncode for stage in stages
        ]
        return all(code in (0, NO_TEST) for code in codes)

    def digest(self) -> str:
        """SHA-256 of its files, and of what decides which of its tests are skipped."""
        present = [program for program in PROGRAMS if shutil.which(program)]
        digest = hashlib.sha256(repr((self, os.geteuid() == 0, present)).encode())
        for file in self.files():
            digest.update(file.encode() + b"\0" + (ROOT / file).read_bytes())
        return digest.hexdigest()

    def files(self) -> list[str]:
        """What it depends on: its files, what they import, directly or not, and what is shared.

        Of a package, all its files count; of other suites' tests, the modules that are imported.
        """
        sources, graph = imports()
        own = tracked(*{re.sub("^(plugins/[^/]+)/.*", r"\1", path) for path in self.paths})
        tests = [file for file in tracked(".") if file.endswith(".py") and "/src/" not in file]
        imported: set[str] = set()
        for file in own:  # which grows by the modules of other suites' tests
            if file.endswith(".py"):
                names = set(re.findall(r"^\s*(?:from|import) ([\w.]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE))
                paths = {name.replace(".", "/") for name in names - imported}
                own += [test for test in tests if {test[:-3], str(Path(test).parent)} & paths and test not in own]
                imported |= names
        modules = imported & graph.modules
        for module in list(modules):
            modules |= graph.find_upstream_modules(module)
        packages = {module.rpartition(".")[0] or module for module in modules}
        places = [sources[name.partition(".")[0]].parent / name.replace(".", "/") for name in packages]
        return sorted({*own, *tracked(*SHARED, *(str(place.relative_to(ROOT)) for place in places))})


def suites() -> dict[str, Suite]:
    """All suites by name."""
    plugins = sorted(path.parent.name for path in ROOT.glob("plugins/*/tests"))
    kernel = {"TESTCTL_TEST_KERNELS": "6.1"}
    machines = {"TESTCTL_MACHINES": os.environ.get("TESTCTL_MACHINES", "ci")}
    return {
        "machines": Suite((MACHINES,), "machines", environment=machines),
        **{name: Suite((f"plugins/{name}/tests",), "not machines", MACHINES) for name in plugins},
        "6.1": Suite(CORE, "lab", arguments=("-k", "6.1"), environment=kernel),
        "long": Suite(CORE, "long"),
        "core": Suite(CORE),
    }


@cache
def imports() -> tuple[dict[str, Path], grimp.ImportGraph]:
    """The directories of the packages, and which modules import which."""
    sources = {path.parent.name: path.parent for path in ROOT.glob("**/src/*/__init__.py")}
    return sources, grimp.build_graph(*sources)


def tracked(*places: str) -> list[str]:
    """Files of the repository below these places, and those that are to be."""
    argv = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *places]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return [file for file in done.stdout.split("\0") if (ROOT / file).is_file()]


def last(passed: Path) -> float:
    """When a suite passed last; 0: never."""
    return passed.stat().st_mtime if passed.is_file() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Run suites of tests.")
    parser.add_argument("suites", nargs="+", choices=[*suites(), "others"], metavar="SUITE")
    parser.add_argument("--changed", action="store_true", help="not those that passed with the files they have now")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no suite after these minutes")
    parser.add_argument("--testers", default=str((os.cpu_count() or 1) + 2), help="processes at a time")
    given = parser.parse_args()
    chosen = {
        name: suite
        for name, suite in suites().items()
        if name in given.suites or (name != "core" and "others" in given.suites)
    }
    PASSED.mkdir(parents=True, exist_ok=True)
    end = time.time() + 60 * given.minutes
    limits = {}
    if given.minutes != float("inf"):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        limits = {UNTIL: str(end), "TESTCTL_TESTS_ORDER": commit.stdout.strip()}
    for name, suite in sorted(chosen.items(), key=lambda item: last(PASSED / item[0])):
        digest = suite.digest()
        passed = PASSED / name
        if given.changed and passed.is_file() and passed.read_text(encoding="ascii") == digest:
            print(f"suite {name}: passed before with the same files", flush=True)
            continue
        if time.time() > end:
            print(f"suite {name}: not run, {given.minutes:g} minutes are over", flush=True)
            continue
        print(f"suite {name}", flush=True)
        if not replace(suite, environment=suite.environment | limits).passes(given.testers):
            sys.exit(1)
        passed.write_text(digest if time.time() <= end else IN_PART, encoding="ascii")


if __name__ == "__main__":
    main()
