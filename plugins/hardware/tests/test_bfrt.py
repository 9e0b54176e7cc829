# SPDX-License-Identifier: Apache-2.0
"""The driver's calls of BFRuntime's client, as its documentation has them: a client that keeps them, and no switch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Entry, Exact, Range
from testctl_hardware import bfrt
from testctl_hardware.bfrt import ALL_PIPES, BfrtDriver


@dataclass
class Row:
    """Of a table, as the client gives it."""

    values: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.values


@dataclass
class Info:
    """Two keys and one action."""

    def key_field_name_list_get(self) -> list[str]:
        return ["flow", "ordinal", "$MATCH_PRIORITY"]

    def key_field_match_type_get(self, name: str) -> str:
        return {"flow": "Exact", "ordinal": "Ternary"}[name]

    def key_field_size_get(self, name: str) -> tuple[int, int]:
        return 1, 8

    def action_name_list_get(self) -> list[str]:
        return ["ingress.fate.drop"]


@dataclass
class Table:
    """Keeps what it is asked for."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    info: Info = field(default_factory=Info)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def make_key(self, fields: list[Any]) -> tuple[Any, ...]:
        return tuple(fields)

    def make_data(self, fields: list[Any], action: str = "") -> tuple[Any, ...]:
        return (*fields, action)

    def entry_get(self, target: Any, keys: Any, flags: Any) -> Iterator[tuple[Row, None]]:
        self.calls.append(("get", target, *keys))
        yield from ((Row(one), None) for one in self.rows)

    def entry_mod(self, target: Any, keys: Any, data: Any) -> None:
        self.calls.append(("mod", target, *keys, *data))

    def entry_add(self, target: Any, keys: Any, data: Any) -> None:
        self.calls.append(("add", target, *zip(keys, data, strict=True)))


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Table]:
    """The tables of a program, and of the chip, behind a client in place of the SDE's."""
    found = {"tf1.tm.port.cfg": Table(), "pipe.ingress.fate.rules": Table()}

    class Interface:
        def __init__(self, address: str, client_id: int, device_id: int, num_tries: int) -> None:
            if address == "nobody":
                raise RuntimeError("no answer")

        def bind_pipeline_config(self, program: str) -> None: ...

        def bfrt_info_get(self, program: str) -> Any:
            info = ModuleType("info")
            info.table_dict, info.table_get = found, found.__getitem__  # type: ignore[attr-defined]
            return info

    client = ModuleType("bfrt_grpc.client")
    names = {
        "ClientInterface": Interface,
        "Target": lambda device_id, pipe_id: ("pipe", pipe_id),
        "KeyTuple": lambda name, *value, **words: (name, *value, *words.items()),
        "DataTuple": lambda name, *value, **words: (name, *value, *words.items()),
        "BfruntimeRpcException": type("BfruntimeRpcException", (Exception,), {}),
    }
    for name, one in names.items():
        setattr(client, name, one)
    monkeypatch.setitem(sys.modules, "bfrt_grpc", ModuleType("bfrt_grpc"))
    monkeypatch.setitem(sys.modules, "bfrt_grpc.client", client)
    return found


def test_a_row_of_a_fixed_table_is_read_and_changed(tables: dict[str, Table]) -> None:
    driver, table = BfrtDriver("here", "testbed"), tables["tf1.tm.port.cfg"]
    with pytest.raises(DriverError, match=r"BFRuntime at here: .*cfg {'dev_port': 132}: want a row; got none"):
        driver.fixed("tf1.tm.port.cfg", {"dev_port": 132}, 1)
    table.rows = [{"pg_id": 1}]
    assert driver.fixed("tf1.tm.port.cfg", {"dev_port": 132}, 1) == {"pg_id": 1}
    driver.modify("tf1.tm.port.cfg", {"dev_port": 132}, {"on": True, "mode": "BPS", "most": 5}, "shape")
    key = (("dev_port", 132),)
    data = (("on", ("bool_val", True)), ("mode", ("str_val", "BPS")), ("most", 5), "shape")
    assert table.calls[1:] == [("get", ("pipe", 1), key), ("mod", ("pipe", ALL_PIPES), key, data)]


def test_a_range_becomes_a_row_for_each_prefix(tables: dict[str, Table]) -> None:
    keys = {"flow": Exact(1), "ordinal": Range(1, 2)}
    BfrtDriver("here", "testbed").insert(Entry("fate.rules", keys, "drop", {"rank": 3}, 7))
    ((add, target, *rows),) = tables["pipe.ingress.fate.rules"].calls
    assert (add, target) == ("add", ("pipe", ALL_PIPES))
    matches = [(("value", 1), ("mask", 0xFF)), (("value", 2), ("mask", 0xFF))]
    priority = ("$MATCH_PRIORITY", (1 << 24) - 1 - 7)
    drop = (("rank", 3), "ingress.fate.drop")
    assert rows == [((("flow", ("value", 1)), ("ordinal", *match), priority), drop) for match in matches]


@pytest.mark.usefixtures("tables")
def test_what_the_client_raises_says_who() -> None:
    with pytest.raises(DriverError, match=r"^BFRuntime at nobody: connect: no answer$"):
        BfrtDriver("nobody", "testbed")


def test_a_switch_that_does_not_take_the_program_is_left_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    left = []

    class Interface:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def bind_pipeline_config(self, program: str) -> None:
            raise RuntimeError(f"no such program: {program}")

        def tear_down_stream(self) -> None:
            left.append(self)

    monkeypatch.setattr(
        bfrt, "client_module", lambda: SimpleNamespace(ClientInterface=Interface, BfruntimeRpcException=OSError)
    )
    with pytest.raises(DriverError, match="bind testbed"):
        BfrtDriver("127.0.0.1:50052", "testbed")
    assert len(left) == 1
