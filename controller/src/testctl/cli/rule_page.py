# SPDX-License-Identifier: Apache-2.0
"""What `testctl rules NAME` says of a rule."""

from __future__ import annotations

from testctl.cli.parameter_page import in_lines
from testctl.rules import RuleSpec


def page(spec: RuleSpec) -> str:
    lines = [
        ("", spec.must),
        ("level", spec.level),
        ("source", spec.source),
        ("quote", spec.quote),
        ("linux", spec.linux),
        ("needs", ", ".join(spec.needs)),
        ("example", f"allow: [{{rule: {spec.name}, reason: why it may be broken}}]"),
    ]
    return in_lines(spec.name, lines)
