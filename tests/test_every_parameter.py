# SPDX-License-Identifier: Apache-2.0
"""Every parameter with every command that takes tuples: it reaches the testbed, or is refused with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from testctl.cli.main import app
from testctl.cli.parameter_page import Row, example, rows_of
from testctl.core.point import PointSpec
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.lab_exec import Order, _spec_of, point_for
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec import p4_program
from testctl_agent.spec.errors import PlanError
from testctl_agent.wire.messages import plain

COMMAND = ("flows.generator=command", "flows.client=/bin/true", "flows.server=/bin/true")
OWN = {
    ("host", "initcwnd"): "hosts.initcwnd=20", ("host", "kernel"): "hosts.kernel='6.1'",
    ("host", "sysctl"): "hosts.tcp_sack=0", ("switch", "fate"): "switch.fate=drop data 1 of bulk",
    ("switch", "backend"): "switch.backend=netem",
    ("port", "down"): "switch:receiver.down=10ms-20ms", ("port", "framing"): "switch:receiver.framing=24B",
    ("flow", "cc"): "flows.cc=reno", ("flow", "family"): "flows.family=6",
    ("flow", "pattern"): "flows.pattern=on-off 100ms/50ms",
}  # fmt: skip
"""ENTITY.PARAM=VALUE of those whose example has no value, or the value that they have anyway."""
ROWS = rows_of(None)[0]
PROGRAM = Path(__file__).parents[1] / "plugins" / "p4c_ebpf" / "tests" / "programs" / "l2.json"


def commands(command: Any = None, before: str = "") -> Iterator[str]:
    """Those with the option --set."""
    command = typer.main.get_command(app) if command is None else command
    for name, found in command.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, f"{before}{name} ")
        elif any("--set" in option.opts for option in found.params):
            yield before + name


def test_where_each_command_takes_its_tuples() -> None:
    """Those of plans take them in load_plan, which is called with all words below; `topologies` those of a topology."""
    of_plans = {"plan", "run", "compare", "aa", "bisect", "mutate", "nightly"}
    assert set(commands()) == of_plans | {"topologies", "lab exec"}


def words_of(row: Row) -> list[str]:
    """--set words that set the parameter, the first one, and what it needs beside it."""
    if row.name in ("client", "server"):
        return sorted(COMMAND, key=lambda word: not word.startswith(f"flows.{row.name}="))
    if own := OWN.get((row.kind, row.name)):
        return [own]
    if row.kind == "switch" and row.name in ("program", "entries"):
        pytest.importorskip("p4c_ebpf")
        program = f"switch.program={p4_program.of_file(PROGRAM.read_bytes(), PROGRAM)}"
        entries = f"switch.entries={p4_program.entries_of_file(b'table_set_default forward send 1', Path('mine'))}"
        return [program] if row.name == "program" else [entries, program]
    found = re.findall(r"- \[(\S+), (\S+), (.*)\]", example(row))
    return [f"{entity}.{name}={value}" for entity, name, value in found]


def quoted(word: str) -> str:
    key, _, value = word.partition("=")
    return f"{key}='{value}'" if "," in value and not value.startswith("'") else word


def what_is_asked(spec: PointSpec) -> dict[str, Any]:
    """All that a testbed sets, records and sends."""
    whole = {"parts": []} | spec.to_json()
    return {name: whole[name] for name in ("topology", "state", "collect", "flows", "kernel", "parts", "backend")}


def of_plan(words: list[str]) -> dict[str, Any]:
    text = b"topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [hosts, tcp_dsack, 1]\n"
    (point,) = load_plan(text, overrides=[quoted(word) for word in words], metrics={}).points
    return what_is_asked(spec_of(point))


def of_exec(words: list[str]) -> dict[str, Any]:
    point = point_for("pair", None, [quoted(word) for word in words])
    return what_is_asked(_spec_of(Order(point, (), {})))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.name}")
def test_a_plan_asks_for_it(row: Row) -> None:
    word, *beside = words_of(row)
    found = of_plan([word, *beside])
    try:
        without = of_plan(beside)
    except PlanError:  # what is beside it has no use without it
        assert any(row.name in flow["options"] for flow in found["flows"])
        return
    assert json.dumps(found, default=str) != json.dumps(without, default=str)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.name}")
def test_lab_exec_asks_for_it_or_refuses(row: Row) -> None:
    """Programs have one kernel, and no options of flows, collectors, traffic that is made of a parameter, or fates."""
    word, *beside = words_of(row)
    if row.name == "partition":
        with pytest.raises(PlanError, match="--set: want one kernel for all hosts and switches; got several"):
            of_exec([word, *beside])
        return
    if row.spec.role != "state" or row.name == "fate":
        with pytest.raises(
            PlanError, match=r"want a setting of a host, switch or port|(fate|background): want it in a plan"
        ):
            of_exec([word, *beside])
        return
    assert json.dumps(of_exec([word, *beside]), default=str) != json.dumps(of_exec(beside), default=str)


SET = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [all, mtu, 1400]
  - [hosts, cc, reno]
  - [hosts, gro, off]
  - [hosts, tso, off]
  - [hosts, initcwnd, 7]
  - [hosts, jitter, 10us]
  - [hosts, jitter_distribution, exponential]
  - [hosts, jitter_seed, 3]
  - [hosts, jitter_tail, 1ms]
  - [hosts, jitter_tail_every, 100]
  - [receiver, gro_flush, 20us]
  - [hosts, coalesce_rx, 20us]
  - [hosts, coalesce_rx_frames, 8]
  - [hosts, queues, 1]
  - [sender, htb_rate, 100mbit]
  - [sender, htb_burst, 20kB]
  - [sender, htb_buffer, 200kB]
  - [hosts, tcp_sack, 0]
  - [hosts, tcp_shrink_window, 1]
  - [hosts, net.core.somaxconn, 7]
  - [hosts, tcp_rmem, "4096 131072 6291456"]
  - [switch, ecmp_seed, 5]
  - [switch, fate, "drop data 3 of bulk, first"]
  - ["switch:receiver", rate, 50mbit; 20ms 20mbit]
  - ["switch:receiver", delay, 3ms]
  - ["switch:receiver", buffer, 30kB]
  - ["switch:receiver", ecn_threshold, 10kB]
  - ["switch:receiver", framing, 24B]
  - ["switch:sender", jitter, uniform 100us seed 1]
  - ["switch:sender", largest, 1300B]
  - ["switch:sender", down, 10ms-12ms]
  - [bulk, bytes, 30kB]
"""
NEEDS_A_NIC = "coalesce_(adaptive|tx)|lro|pause|ring"


@pytest.mark.lab
def test_what_is_set_is_read_back(tmp_path: Path) -> None:
    (point,) = load_plan(SET.encode(), metrics={}).points
    asked, outcome = LabTestbed.for_points([point]).run(point, tmp_path)
    assert (outcome.error, outcome.skip) == ("", "")
    wanted = {(entity, name): plain(value) for entity, values in asked.state.items() for name, value in values.items()}
    names = {name for _, name in wanted}
    known = {row.name for row in ROWS if row.spec.role == "state" and row.kind != "flow"}
    others = {"kernel", "backend", "sysctl", "aqm", "htb_ecn_threshold", "htb_mark", "program", "entries"}
    assert {name for name in known - names - others if not re.match(NEEDS_A_NIC, name)} == set()
    for (entity, name), value in wanted.items():
        agent = entity.partition(":")[0]
        after = outcome.entities[agent].after
        assert after[name if entity == agent else f"{entity} {name}"] == value, (entity, name)


@pytest.mark.lab
def test_what_only_a_nic_has_is_a_reason_to_skip(tmp_path: Path) -> None:
    rows = [row for row in ROWS if re.match(NEEDS_A_NIC, row.name)]
    words = [word for row in rows for word in words_of(row)]
    text = b"topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, bytes, 1kB]\n"
    (point,) = load_plan(text, overrides=words, metrics={}).points
    _, outcome = LabTestbed.for_points([point]).run(point, tmp_path)
    assert len(rows) > 8
    assert [row.name for row in rows if f"sender, {row.name}" not in outcome.skip] == []
    assert ": " in outcome.skip
