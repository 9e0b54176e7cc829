# SPDX-License-Identifier: Apache-2.0
"""testctl params, metrics, schema, doctor."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]


def params(as_json: AsJson = False) -> None:
    """List every parameter that a plan can set."""
    from testctl_agent.params import registry

    rows = [
        {"kind": kind, "name": name, "want": spec.type.want, "help": spec.help, "scope": spec.scope,
         "default": spec.default, "testbeds": sorted(spec.testbeds)}
        for kind, specs in registry.specs().items()
        for name, spec in specs.items()
        if not spec.internal
    ]  # fmt: skip
    if as_json:
        print(json.dumps(rows, indent=1, default=str))
        return
    table = Table("entity", "parameter", "value", "what it is", box=None)
    for row in rows:
        table.add_row(str(row["kind"]), str(row["name"]), str(row["want"]), str(row["help"]))
    Console().print(table)


def metrics(as_json: AsJson = False) -> None:
    """List every metric that a plan can expect something of."""
    from testctl.metrics import metric_names

    known = metric_names()
    if as_json:
        print(json.dumps({n: {"unit": m.unit, "help": m.help, "better": m.better} for n, m in known.items()}, indent=1))
        return
    table = Table("metric", "unit", "better", "what it is", box=None)
    for name, info in known.items():
        table.add_row(name, info.unit, info.better, info.help)
    Console().print(table)


def schema() -> None:
    """Print the JSON Schema of a plan, for editors."""
    from testctl.metrics import metric_names
    from testctl.plan import schema as make

    print(json.dumps(make(metrics=metric_names()), indent=1))


def doctor(as_json: AsJson = False) -> None:
    """Say what is missing on this machine, and the command that fixes it."""
    from testctl.cli.doctor import examine

    found = examine()
    if as_json:
        print(json.dumps([f.__dict__ for f in found], indent=1))
    else:
        for finding in found:
            mark = "ok     " if finding.ok else "absent " if finding.optional else "MISSING"
            print(
                f"{mark}  {finding.what}: {finding.got}"
                + ("" if finding.ok else f"\n         fix it with: {finding.fix}")
            )
    sys.exit(0 if all(f.ok or f.optional for f in found) else 3)


def add_to(app: typer.Typer) -> None:
    for command in (params, metrics, schema, doctor):
        app.command()(command)
