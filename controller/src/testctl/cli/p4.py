# SPDX-License-Identifier: Apache-2.0
"""testctl p4 check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import PlanError

from testctl.cli.help import App
from testctl.cli.options import AsJson
from testctl.core.words import counted

if TYPE_CHECKING:
    from testctl_agent.switch.layout import Layout, Table

app = App(help="P4 programs of your own, which a plan names as the program of a switch.", no_args_is_help=True)
DIFFERS = {
    "enq_qdepth": "packets that wait, as BMv2 counts them; at most 4,094",
    "deq_qdepth": "that of enq_qdepth: egress runs when a packet comes to its queue",
    "deq_timedelta": "how long the packet waits until it begins to be sent",
    "egress_global_timestamp": "when the packet begins to be sent, in virtual time",
    "generate_digest": "goes nowhere: there is no controller",
    "modify_field_rng_uniform": "random(): the same numbers in each run",
    "resubmit": "at most eight times, then the packet is lost",
    "recirculate": "at most eight times, then the packet is lost; not of a copy",
    "support_timeout": "its rows stay: there is no controller that could remove them",
}
"""What means something else than in BMv2, or needs a word: fields of standard_metadata, and primitives."""


@app.callback()
def program() -> None:
    """What the lab makes of a P4 program."""


File = Annotated[Path, typer.Argument(metavar="FILE", help="P4 for v1model, or the JSON of p4c")]


@app.command()
def check(file: File, as_json: AsJson = False) -> None:
    """Compile a program as a plan would, and print its tables and what differs from BMv2.

    Exit 0: a plan can have it; 2: it is refused, with its file and line.
    """
    from testctl.system.p4_programs import layout_of

    try:
        value = p4_program.of_file(file.read_bytes(), file)
    except OSError as error:
        raise PlanError(f"{file}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise PlanError(f"{file}: {error}") from error
    layout = layout_of(value)
    text = _read(value)
    used = [name for name in DIFFERS if (f'"{name}": true' if name == "support_timeout" else f'"{name}"') in text]
    if as_json:
        tables = {table.name: _keys(table) for table in layout.tables}
        print(json.dumps({"tables": tables, "differs": {name: DIFFERS[name] for name in used}}, indent=1))
        return
    for line in (*_lines(layout), *(f"{name:<24} {DIFFERS[name]}" for name in used)):
        print(line)


def _read(value: str) -> str:
    """The parts of a program that read fields."""
    raw = json.loads(p4_program.parse(value)[1])
    return json.dumps([raw.get(part) for part in ("parsers", "actions", "pipelines", "calculations")])


def _keys(table: Table) -> dict[str, str]:
    return {key.name: f"{key.match} {key.width}" for key in table.keys}


def _lines(layout: Layout) -> list[str]:
    lines = []
    for table in layout.tables:
        keys = ", ".join(f"{name} ({how})" for name, how in _keys(table).items()) or "no key"
        rows = "rows of the program's own" if table.fixed else f"at most {counted(table.capacity, 'row')}"
        lines.append(f"table {table.name}: {keys}; {rows}")
        for action in table.actions:
            lines.append(f"  {action.name}({', '.join(f'{param.name}: {param.width}' for param in action.params)})")
    for what, cells in (("register", layout.registers), ("counter", layout.counters), ("meter", layout.meters)):
        lines += [f"{what} {array.name}: {counted(array.size, 'cell')}" for array in cells]
    return lines
