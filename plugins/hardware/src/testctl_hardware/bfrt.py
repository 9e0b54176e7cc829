# SPDX-License-Identifier: Apache-2.0
"""The driver of a Tofino through BFRuntime, by the Python client of Intel's P4 Studio SDE.

`bfrt_grpc.client` comes with the SDE, not from a package index, and is imported when a switch is
opened.  Only its documented calls are used.  Never tried on hardware.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from testctl_agent.spec.errors import DriverError
from testctl_agent.switch.drivers.driver import Count, Entry, Exact, Key, Lpm, Range, Ternary, find, instances_of

from testctl_hardware.prefixes import without_ranges
from testctl_hardware.tofino_units import match_priority

ALL_PIPES = 0xFFFF
_PRIORITY = "$MATCH_PRIORITY"
_PACKETS, _BYTES = "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"


def client_module() -> Any:
    """bfrt_grpc.client.  Raises DriverError when the SDE's Python packages are not there."""
    try:
        return importlib.import_module("bfrt_grpc.client")
    except ImportError as error:
        raise DriverError(
            "BFRuntime: want the module bfrt_grpc.client of Intel's SDE; got none: "
            "set PYTHONPATH to $SDE_INSTALL/lib/python3*/site-packages/tofino"
        ) from error


class BfrtDriver:
    """See driver.py for the contract.

    address  "host:50052" of bf_switchd
    program  the name it was compiled under
    """

    def __init__(self, address: str, program: str, device: int = 0) -> None:
        self._client = client_module()
        self._device = device
        self._who = f"BFRuntime at {address}"
        self._interface = self._ask(
            "connect", lambda: self._client.ClientInterface(address, client_id=0, device_id=device, num_tries=3)
        )
        try:
            self._ask(f"bind {program}", lambda: self._interface.bind_pipeline_config(program))
            self._info = self._ask("its tables", lambda: self._interface.bfrt_info_get(program))
        except DriverError:
            self.close()
            raise
        self.target = self._client.Target(device_id=device, pipe_id=ALL_PIPES)

    def close(self) -> None:
        self._interface.tear_down_stream()

    def table(self, name: str) -> Any:
        """A table by its name or a suffix of it, fixed ones ("tf1.tm.port.cfg") included."""
        names = {full: full for full in self._info.table_dict}
        return self._info.table_get(find(names, name, "table"))

    def fixed(self, name: str, keys: Mapping[str, object], pipe: int = ALL_PIPES) -> dict[str, Any]:
        """The data of one row of a fixed table, as its driver has it."""
        table, target, key = self._fixed_row(name, keys, pipe)
        return self._first(table, target, key, f"{name} {dict(keys)}")

    def modify(
        self, name: str, keys: Mapping[str, object], data: Mapping[str, object], action: str = "", pipe: int = ALL_PIPES
    ) -> None:
        """Change one row of a fixed table; text and truth values go where the client wants them."""
        table, target, key = self._fixed_row(name, keys, pipe)
        tuples = [self._datum(field, value) for field, value in data.items()]
        made = table.make_data(tuples, action) if action else table.make_data(tuples)
        self._ask(f"{name} {dict(keys)}: {dict(data)}", lambda: table.entry_mod(target, [key], [made]))

    def _fixed_row(self, name: str, keys: Mapping[str, object], pipe: int) -> tuple[Any, Any, Any]:
        """The table, the target and the key of one row of a fixed table."""
        table = self.table(name)
        key = table.make_key([self._client.KeyTuple(field, value) for field, value in keys.items()])
        return table, self._client.Target(device_id=self._device, pipe_id=pipe), key

    def insert(self, entry: Entry) -> None:
        """A range of a ternary field becomes a row for each of its prefixes."""
        table = self.table(entry.table)
        keys = self._keys(table, entry)
        data = [self._data(table, entry.action, entry.params) for _ in keys]
        self._ask(f"insert {entry}", lambda: table.entry_add(self.target, keys, data))

    def delete(self, entry: Entry) -> None:
        table = self.table(entry.table)
        keys = self._keys(table, entry)
        self._ask(f"delete {entry}", lambda: table.entry_del(self.target, keys))

    def clear(self, table: str) -> None:
        self._ask(f"clear {table}", lambda: self.table(table).entry_del(self.target, []))

    def set_default(self, table: str, action: str, params: Mapping[str, int]) -> None:
        found = self.table(table)
        if not action:
            self._ask(f"default of {table}", lambda: found.default_entry_reset(self.target))
            return
        data = self._data(found, action, params)
        self._ask(f"default of {table}: {action}", lambda: found.default_entry_set(self.target, data))

    def multicast(self, group: int, ports: Sequence[int], instances: Sequence[int] = ()) -> None:
        """One level-1 node a group, numbered like it: all its copies have one replication id, 0 if none is given."""
        ids = set(instances_of(f"multicast group {group}", ports, instances))
        if len(ids) > 1:
            raise DriverError(f"multicast group {group}: want one instance for all its ports; got {sorted(ids)}")
        gc, groups, nodes = self._client, self.table("$pre.mgid"), self.table("$pre.node")
        group_key = groups.make_key([gc.KeyTuple("$MGID", group)])
        node_key = nodes.make_key([gc.KeyTuple("$MULTICAST_NODE_ID", group)])
        for table, key in ((groups, group_key), (nodes, node_key)):
            if self._there(table, key):
                self._ask(f"delete multicast group {group}", lambda t=table, k=key: t.entry_del(self.target, [k]))  # type: ignore[misc]
        if not ports:
            return
        node = nodes.make_data(
            [
                gc.DataTuple("$MULTICAST_RID", ids.pop()),
                gc.DataTuple("$MULTICAST_LAG_ID", int_arr_val=[]),
                gc.DataTuple("$DEV_PORT", int_arr_val=list(ports)),
            ]
        )
        members = groups.make_data(
            [
                gc.DataTuple("$MULTICAST_NODE_ID", int_arr_val=[group]),
                gc.DataTuple("$MULTICAST_NODE_L1_XID_VALID", bool_arr_val=[False]),
                gc.DataTuple("$MULTICAST_NODE_L1_XID", int_arr_val=[0]),
            ]
        )
        self._ask(f"multicast group {group}", lambda: nodes.entry_add(self.target, [node_key], [node]))
        self._ask(f"multicast group {group}", lambda: groups.entry_add(self.target, [group_key], [members]))

    def counter(self, name: str, index: int) -> Count:
        table = self.table(name)
        key = table.make_key([self._client.KeyTuple("$COUNTER_INDEX", index)])
        found = self._first(table, self.target, key, f"counter {name}[{index}]")
        return Count(int(found.get(_PACKETS, 0)), int(found.get(_BYTES, 0)))

    def direct(self, entry: Entry) -> Count:
        table = self.table(entry.table)
        rows = [self._first(table, self.target, key, f"counter of {entry}") for key in self._keys(table, entry)]
        if any(_PACKETS not in row and _BYTES not in row for row in rows):
            raise DriverError(f"table {entry.table}: want a direct counter; the program gives it none")
        packets, size = (sum(int(row.get(name, 0)) for row in rows) for name in (_PACKETS, _BYTES))
        return Count(packets, size)

    def register(self, name: str) -> list[int]:
        """All cells, each the sum over the pipes: a flow passes through one."""
        table = self.table(name)
        rows = self._ask(f"register {name}", lambda: list(table.entry_get(self.target, [], {"from_hw": True})))
        found = {key.to_dict()["$REGISTER_INDEX"]["value"]: _cell(data.to_dict()) for data, key in rows}
        return [found[index] for index in sorted(found)]

    def write_register(self, name: str, index: int, value: int) -> None:
        table = self.table(name)
        (cell,) = [field for field in table.info.data_field_name_list_get() if field.endswith(".f1")]
        key = table.make_key([self._client.KeyTuple("$REGISTER_INDEX", index)])
        data = table.make_data([self._client.DataTuple(cell, value)])
        self._ask(f"register {name}[{index}]", lambda: table.entry_add(self.target, [key], [data]))

    def _keys(self, table: Any, entry: Entry) -> list[Any]:
        info = table.info
        names = [name for name in info.key_field_name_list_get() if name != _PRIORITY]
        kinds = {name: str(info.key_field_match_type_get(name)).lower() for name in names}
        ternary = {name: int(info.key_field_size_get(name)[1]) for name in names if "ternary" in kinds[name]}
        return [self._key(table, row) for row in without_ranges(entry, ternary)]

    def _key(self, table: Any, entry: Entry) -> Any:
        names = [name for name in table.info.key_field_name_list_get() if name != _PRIORITY]
        if unknown := [name for name in entry.keys if name not in names]:
            raise DriverError(f"table {entry.table}: want keys {', '.join(names)}; got {', '.join(unknown)}")
        tuples = []
        for name in names:
            kind = str(table.info.key_field_match_type_get(name)).lower()
            bits = int(table.info.key_field_size_get(name)[1])
            if name not in entry.keys and "exact" in kind:
                raise DriverError(f"table {entry.table}: want the exact key {name}; got none")
            tuples.append(self._client.KeyTuple(name, **key_words(kind, bits, entry.keys.get(name))))
        if _PRIORITY in table.info.key_field_name_list_get():
            try:
                tuples.append(self._client.KeyTuple(_PRIORITY, match_priority(entry.priority)))
            except ValueError as error:
                raise DriverError(f"table {entry.table}: {error}") from error
        return table.make_key(tuples)

    def _data(self, table: Any, action: str, params: Mapping[str, int]) -> Any:
        names = {name: name for name in table.info.action_name_list_get()}
        full = find(names, action, "action")
        return table.make_data([self._client.DataTuple(name, value) for name, value in params.items()], full)

    def _datum(self, field: str, value: object) -> Any:
        if isinstance(value, bool):
            return self._client.DataTuple(field, bool_val=value)
        if isinstance(value, str):
            return self._client.DataTuple(field, str_val=value)
        return self._client.DataTuple(field, value)

    def _there(self, table: Any, key: Any) -> bool:
        try:
            return any(True for _ in table.entry_get(self.target, [key], {"from_hw": False}))
        except self._client.BfruntimeRpcException:
            return False

    def _first(self, table: Any, target: Any, key: Any, what: str) -> dict[str, Any]:
        rows = self._ask(what, lambda: list(table.entry_get(target, [key], {"from_hw": True})))
        if not rows:
            raise DriverError(f"{self._who}: {what}: want a row; got none")
        found: dict[str, Any] = rows[0][0].to_dict()
        return found

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:
        """Make a call of the client; its exceptions become DriverError."""
        refused: tuple[type[Exception], ...] = (self._client.BfruntimeRpcException, KeyError, RuntimeError)
        refused += (getattr(self._client, "BfruntimeReadWriteRpcException", RuntimeError),)
        try:
            return call()
        except refused as error:
            raise DriverError(f"{self._who}: {what}: {error}") from error


def key_words(kind: str, bits: int, key: Key | None) -> dict[str, int]:
    """What KeyTuple takes for a key of a kind ("exact", "ternary", "lpm", "range") and a width; None: anything."""
    every = (1 << bits) - 1
    match key:
        case None:
            key = Range(0, every) if "range" in kind else Lpm(0, 0) if "lpm" in kind else Ternary(0, 0)
        case Exact(value) if "ternary" in kind:
            key = Ternary(value, every)
        case Exact(value) if "lpm" in kind:
            key = Lpm(value, bits)
        case Exact(value) if "range" in kind:
            key = Range(value, value)
        case _:
            pass
    match key:
        case Exact(value) if "exact" in kind:
            return {"value": value}
        case Ternary(value, mask) if "ternary" in kind:
            return {"value": value & mask, "mask": mask}
        case Lpm(value, length) if "lpm" in kind:
            return {"value": value & (every ^ ((1 << (bits - length)) - 1)), "prefix_len": length}
        case Range(low, high) if "range" in kind:
            return {"low": low, "high": high}
    raise DriverError(f"BFRuntime: want a match that is {kind}; got {key}")


def _cell(data: Mapping[str, Any]) -> int:
    """One register cell: its values in all pipes summed."""
    for name, value in data.items():
        if name.endswith(".f1"):
            return sum(value) if isinstance(value, list) else int(value)
    raise DriverError(f"BFRuntime: want a register of one field; got {', '.join(data)}")
