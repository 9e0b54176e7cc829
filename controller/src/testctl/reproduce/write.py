# SPDX-License-Identifier: Apache-2.0
"""The plan of what was inferred: YAML, with a comment before each tuple that says what it was inferred from."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.reproduce.infer import HOSTS, Inferred
from testctl.reproduce.tuples import Tuple
from testctl.results.atomic import naming_path, write_text

_WIDTH = 116
_BARE = re.compile(r"[a-z]+|[0-9]+|[0-9.]+[a-zA-Z]+")
"""Values that YAML takes for what they are."""


def plan_text(
    inferred: Inferred, source: str, tuples: Sequence[Tuple] | None = None, how_far: str = ""
) -> str:  # fmt: skip
    """A plan that `load_plan` takes; source: what the packets are from; tuples: others than those inferred; how_far: it
    and the packets go together."""
    lines = ["# SPDX-License-Identifier: Apache-2.0"]
    lines += _comment(f"Inferred from the packets of {source} by testctl reproduce.")
    lines += _comment(f"With {how_far}.") if how_far else []
    lines += [line for text in inferred.unknown for line in _comment(f"Not reproduced: {text}.")]
    ends = {True: " -> ".join(HOSTS), False: " -> ".join(HOSTS[::-1])}
    flows = ", ".join(f"{name}: {ends[apps[0].forward]}" for name, apps in inferred.flows.items())
    lines += [f"about: {json.dumps(f'What {source} shows, again')}", "topology: pair", f"flows: {{{flows}}}", "tuples:"]
    for item in inferred.tuples if tuples is None else tuples:
        lines += [f"  {line}" for line in _comment(item.why)]
        values = [value if _BARE.fullmatch(value) else json.dumps(value) for value in item.values]
        value = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
        lines.append(f"  - [{item.entity}, {item.param}, {value}]")
    return "\n".join(lines) + "\n"


def check_plan_file(path: Path) -> None:
    """Raises PlanError where a file is, or none can be."""
    if path.suffix != ".yaml":
        raise PlanError(f"{path}: want a file name that ends in .yaml")
    if not path.parent.is_dir():
        raise PlanError(f"{path}: want a file in an existing directory; {path.parent} is none")
    if path.exists() or path.is_symlink():
        raise PlanError(f"{path}: exists already, and is not changed")


def write_plan(path: Path, text: str) -> None:
    """Raises PlanError as `check_plan_file`, TestbedError where it can't be written."""
    check_plan_file(path)
    with naming_path(path, "the plan was not written"):
        write_text(path, text)


def _comment(text: str) -> list[str]:
    clean = " ".join("".join(letter if letter.isprintable() else "?" for letter in text).split())
    return [f"# {line}" for line in textwrap.wrap(clean, _WIDTH)]
