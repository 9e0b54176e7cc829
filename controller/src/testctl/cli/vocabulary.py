# SPDX-License-Identifier: Apache-2.0
"""testctl params, metrics, rules, topologies, schema: what a plan can contain."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from testctl_agent.spec.errors import PlanError

from testctl.cli import complete, parameter_page, topology_page
from testctl.cli.options import AsJson
from testctl.cli.search import find
from testctl.plan import schema as plan_schema


def params(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENTITY|NAME]",
            help="host, switch, port or flow; a parameter's name for its page; or a part of a name",
            autocompletion=complete.parameters,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a plan can set: of an entity, or one parameter with its values, unit, default and testbeds."""
    rows, exact = parameter_page.rows_of(word)
    if as_json:
        print(json.dumps([row.to_json() for row in rows], indent=1, default=str))
        return
    if exact:
        print("\n".join(parameter_page.page(row) for row in rows), end="")
        return
    table = Table("entity", "parameter", "value", "what it is", box=None)
    for row in rows:
        table.add_row(row.kind, row.name, row.spec.type.want, row.spec.help)
    _console().print(table)


def metrics(
    word: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="a metric, or a part of its name", autocompletion=complete.metrics),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What a plan can expect something of: unit, what it is measured from, and when it has no value."""
    from testctl.cli.metric_page import page
    from testctl.metrics import metric_names

    known = metric_names()
    names = find(word, {name: info.help for name, info in known.items()}, "metric") if word is not None else [*known]
    if as_json:
        infos = {n: {"unit": known[n].unit, "help": known[n].help, "better": known[n].better, "needs": known[n].needs}
                 for n in names}  # fmt: skip
        print(json.dumps(infos, indent=1))
    elif word is not None and len(names) == 1:
        print(page(names[0]), end="")
    else:
        table = Table("metric", "unit", "better", "what it is", box=None)
        for name in names:
            table.add_row(name, known[name].unit, known[name].better, known[name].help)
        _console().print(table)


def rules(
    word: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="a rule, or a part of its name", autocompletion=complete.rules),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What every point is judged by: what the RFCs ask of a TCP, with their sentences."""
    from testctl.cli import rule_page
    from testctl.rules import rules as known

    specs = {name: rule.spec for name, rule in known().items()}
    names = find(word, {name: spec.must for name, spec in specs.items()}, "rule") if word is not None else [*specs]
    if as_json:
        print(json.dumps({name: vars(specs[name]) for name in names}, indent=1))
    elif word is not None and len(names) == 1:
        print(rule_page.page(specs[names[0]]), end="")
    else:
        table = Table("rule", "level", "source", "what must hold", box=None)
        for name in names:
            table.add_row(name, specs[name].level, specs[name].source, specs[name].must)
        _console().print(table)


def topologies(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="one of the lab's, or a path such as ./mine.yaml", autocompletion=complete.topologies
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="PARAM=N", help="a parameter of it, such as senders=2")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The topologies that a plan can name; of one its hosts, switches, ports and groups, with a drawing."""
    if name is None:
        if sets:
            raise PlanError("--set: want the NAME of a topology too")
        listed = topology_page.listed()
        if as_json:
            print(json.dumps(listed, indent=1))
            return
        table = Table("topology", "parameters", "what it is", box=None)
        for row in listed:
            table.add_row(row["name"], row["takes"], row["about"])
        _console().print(table)
        return
    file, topology = topology_page.topology_of(name, sets or [])
    if as_json:
        print(json.dumps(topology.to_json(), indent=1))
    else:
        print(topology_page.page(file, topology), end="")


def schema() -> None:
    """Print the JSON Schema of a plan, for editors."""
    from testctl.metrics import metric_names

    print(json.dumps(plan_schema(metrics=metric_names()), indent=1))


def _console() -> Console:
    from testctl.report.terminal import plain_console

    return plain_console(Console())
