# SPDX-License-Identifier: Apache-2.0
"""p4c's own STF tests on the translator, where p4c and its sources are at hand.

    python plugins/p4c_ebpf/tests/stf.py --p4c p4c-bm2-ss --sources p4c [--all] [NAME …]

Every v1model program that has an .stf beside it is compiled, translated, loaded and sent its packets; --all
also translates and loads those that have none.  Needs root (BPF).  Exit 1 when a program crashed, failed or
was not loaded.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p4c_ebpf.errors import ProgramError, ToolError
from testctl_agent.spec.errors import DriverError, TestbedError

sys.path.insert(0, str(Path(__file__).parents[3]))  # as a script, too
from plugins.p4c_ebpf.tests.harness import EbpfTarget, compiled
from plugins.p4c_ebpf.tests.stf_grammar import StfError, parse
from plugins.p4c_ebpf.tests.stf_run import PAYLOAD, Failed, StfTest, short

FOLDERS = ("testdata/p4_16_samples", "testdata/p4_14_samples")
_SHORT = "a packet below 14 bytes ends before the parser does, and with payload behind it does not"
NOT_COMPARABLE = {
    "issue1768-bmv2": _SHORT,
    "parser_error-bmv2": _SHORT,
    "counter3": "its bytes include a frame check sequence, which BMv2 does not count (p4c's runner skips counters)",
}
"""Tests whose expectations the kernel can't be held to, and why."""
WRONG = ("fail", "crashed", "not loaded")


@dataclass(frozen=True)
class Result:
    """verdict: pass, padded (passes with payload added), loaded (no .stf), refused, fail, crashed, not loaded,
    not comparable (loaded; see NOT_COMPARABLE), not compiled (by p4c: another architecture, or no program)."""

    name: str
    verdict: str
    reason: str = ""


def programs(sources: Path, every: bool) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((sources / folder).glob("*.p4")):
            tested = path.with_suffix(".stf").exists()
            if not path.is_file():  # a link into a part of p4c that is not there
                continue
            if every or (tested and (path.stem.endswith("-bmv2") or folder != FOLDERS[0])):
                yield path


def compile_p4(p4c: Path, sources: Path, path: Path, out: Path) -> str:
    """ "" or why not."""
    text = path.read_text(encoding="utf-8", errors="replace")
    old = "p4_14" in str(path.parent)
    if not old and "v1model.p4" not in text:
        return "not v1model"
    argv = [str(p4c), "--arch", "v1model", "-I", str(sources / "p4include"), "-o", str(out), str(path)]
    argv += ["--std", "p4-14"] if old else []
    include = {"P4C_16_INCLUDE_PATH": str(sources / "p4include")}  # P4-14 becomes P4-16 for v1model
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300, env=os.environ | include)
    except subprocess.TimeoutExpired:
        return "p4c did not end"
    if done.returncode == 0 and out.exists():
        return ""
    said = done.stderr.strip().splitlines()
    return next((line for line in said if "error" in line.lower()), f"exit {done.returncode}")[-120:]


def judge(name: str, json: Path, stf: Path | None) -> Result:
    """What becomes of one compiled program."""
    try:
        program = compiled(json, first_port=0)
    except ProgramError as error:
        return Result(name, "refused", str(error))
    except (TestbedError, ToolError) as error:
        return Result(name, "not loaded", str(error)[-200:])
    except Exception:  # noqa: BLE001  a crash is a result
        return Result(name, "crashed", traceback.format_exc().strip().splitlines()[-1])
    try:
        if stf is None:
            EbpfTarget(program).close()
            return Result(name, "loaded")
        if name in NOT_COMPARABLE:
            EbpfTarget(program).close()
            return Result(name, "not comparable", NOT_COMPARABLE[name])
        statements = parse(stf.read_text(encoding="utf-8"))
        padding = PAYLOAD if short(statements) else b""
        StfTest(program, statements, padding).run()
        return Result(name, "padded" if padding else "pass")
    except (TestbedError, ToolError) as error:
        return Result(name, "not loaded", str(error)[-200:])
    except (Failed, StfError, DriverError) as error:
        return Result(name, "fail", str(error))
    except Exception:  # noqa: BLE001  a crash is a result
        return Result(name, "crashed", " / ".join(traceback.format_exc().strip().splitlines()[-3:]))


def results(p4c: Path, sources: Path, every: bool, names: list[str]) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="stf-") as folder:
        for path in programs(sources, every):
            if names and path.stem not in names:
                continue
            out = Path(folder) / f"{path.stem}.json"
            if why := compile_p4(p4c, sources, path, out):
                yield Result(path.stem, "not compiled", why)
            else:
                stf = path.with_suffix(".stf")
                yield judge(path.stem, out, stf if stf.exists() else None)


def table(found: list[Result]) -> str:
    """Counts by verdict, the refusals by reason, and each program that did not pass."""
    lines = [f"{count:5} {verdict}" for verdict, count in Counter(one.verdict for one in found).most_common()]
    reasons = Counter(re.sub(r".*can't be translated: ", "", one.reason) for one in found if one.verdict == "refused")
    lines += ["", "refused:", *(f"{count:5} {reason}" for reason, count in reasons.most_common())]
    wrong = [one for one in found if one.verdict in WRONG]
    return "\n".join([*lines, "", *(f"{one.verdict:10} {one.name}: {one.reason}" for one in wrong)])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--p4c", type=Path, required=True, help="p4c-bm2-ss")
    parser.add_argument("--sources", type=Path, required=True, help="p4c's source tree, with testdata and p4include")
    parser.add_argument("--all", action="store_true", help="programs without an .stf, too")
    parser.add_argument("names", nargs="*", help="programs, without .p4; none: all")
    asked = parser.parse_args()
    found = []
    for one in results(asked.p4c, asked.sources, asked.all, asked.names):
        found.append(one)
        print(f"{one.verdict:12} {one.name:50} {one.reason[:200]}", flush=True)
    print(table(found))
    return int(any(one.verdict in WRONG for one in found))


if __name__ == "__main__":
    sys.exit(main())
