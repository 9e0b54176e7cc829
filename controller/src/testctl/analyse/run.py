# SPDX-License-Identifier: Apache-2.0
"""From files of packets to a run's directory with one point, which all that reads runs can read."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.analyse.assess import assess_capture
from testctl.analyse.ends import At, clients, ends_of
from testctl.analyse.flows import CapturedFlow, flows_of, text_of
from testctl.analyse.pair import Common, clock_of, common_of, delays_of, first_is_client, rough_offset
from testctl.analyse.point import BEFORE, Place, Side, records_of, with_clocks
from testctl.analyse.walk import Clock, Scanned
from testctl.core.outcome import HostClock
from testctl.core.units import show_time
from testctl.plan.cost import POINT_KEPT
from testctl.records import Records
from testctl.records.schema import Array, Bools, Ints
from testctl.report import write_report
from testctl.results import PointResult, Run, RunWriter, build_summary, collect_versions, load_point, write_point
from testctl.results.atomic import naming_path, size_text
from testctl.results.work import WORK, begin_work, clear_work
from testctl.system.memory import free_mb, give_back

ROW_MEMORY, ROW_OF_FLOW_MEMORY = 250, 400
"""Bytes of a row of the packets table, and more of the largest flow's.  Measured with 3 M rows of one flow and 10 M of
ten."""
ROW_DISK = 130
"""Bytes of a row in files that are removed, and in the run."""
_PLAN = "capture"
_PEER = "-peer"
"""Behind the name of the end that is not looked at, of a connection within a host."""


@dataclass(frozen=True)
class Chosen:
    """The connections that are analysed.

    sides, flows, reverse   as of point.records_of
    servers  entities of the servers' ends of two files, by flow; empty for one file
    notes    what a reader should know
    unjudged why no rule is judged; "" where rules are
    packets  of these connections in all files
    """

    sides: tuple[Side, ...]
    flows: tuple[CapturedFlow, ...]
    reverse: tuple[bool, ...]
    notes: tuple[str, ...]
    unjudged: str
    packets: int


_MOST_BACK_NS = 1_000_000_000
"""Packets of one moment that several processors captured are out of order by less."""


def choose(scanned: Sequence[Scanned], at: At | None = None, only: Sequence[str] = ()) -> Chosen:
    """What of one file, or of two that were captured at the two ends, is analysed, and where it was captured.

    at: where a lone file was captured, or the first of two
    only: ends (address, port, or address:port) of the connections that are chosen; all without any

    Raises PlanError for no such connection, more files or an end that two files can't have; RecordsError for two
    without a common connection.
    """
    if len(scanned) > 2:
        raise PlanError(f"want one file, or two that were captured at the two ends; got {len(scanned)}")
    if len(scanned) == 2 and scanned[0].path.samefile(scanned[1].path):
        raise PlanError(f"{scanned[0].path}: want two files of the two ends; got one twice")
    notes = [f"{file.path.name}: {note}" for file in scanned for note in file.notes]
    rows = _with_ends(scanned[0], only) if only else np.arange(len(scanned[0].connections))
    chosen = _one(scanned[0], rows, at) if len(scanned) == 1 else _two(scanned[0], scanned[1], rows, at)
    if any(file.backwards_ns > _MOST_BACK_NS for file in scanned):
        chosen = replace(
            chosen, unjudged=chosen.unjudged or "the order of packets is unknown: times go back by seconds"
        )
    return replace(chosen, notes=(*notes, *chosen.notes))


def _with_ends(file: Scanned, only: Sequence[str]) -> Ints:
    """The connections that have an end with such an address, port or both.  Raises PlanError without any."""
    wanted = {_as_listed(end) for end in only}
    rows = []
    for index, connection in enumerate(file.connections):
        ends = ((text_of(connection, end), str(connection["port"][end])) for end in (0, 1))
        if any(wanted & {address, port, f"{address}:{port}", f"{address}.{port}"} for address, port in ends):
            rows.append(index)
    if not rows:
        raise PlanError(f"--only {' '.join(only)}: want an end of a connection of {file.path}; got none with it")
    return np.array(rows, np.int64)


def _as_listed(end: str) -> str:
    """An end without brackets (RFC 3986) and zone (RFC 4007), which captures lack, its address in RFC 5952's form."""
    address, _, port = end.removeprefix("[").partition("]")
    try:
        address = str(ip_address(address.partition("%")[0]))
    except ValueError:
        return end
    return f"{address}.{port.removeprefix(':')}" if port else address


def _one(file: Scanned, rows: Ints, at: At | None) -> Chosen:
    connections = file.connections
    ends = ends_of(connections, at)
    notes = []
    between = not ends.here[rows].any()
    if between:
        known = at == "between"
        where = "was made between the hosts" if known else "does not show at which end it was made (--at says it)"
        notes.append(f"the capture {where}: what needs a host's own capture is not known, and no rule is judged")
    else:
        here = rows[ends.here[rows].any(axis=1)]
        if more := len(rows) - len(here):
            notes.append(f"{more} connections of other hosts passed by and are left out (--at between has all)")
        rows = here
    flows, left = flows_of(connections, ends.client, rows)
    notes += [f"{left} connections are left out: more than can be shown"] if left else []
    way = _bytes(connections, ends.client)
    reverse = [bool(way[flow.members, 1].sum() > way[flow.members, 0].sum()) for flow in flows]
    places = []
    for number, (flow, back) in enumerate(zip(flows, reverse, strict=True)):
        if between:
            flows[number], place = _passing(flow, back)
        else:
            flows[number], place = _at_end(flow, np.asarray(ends.here[flow.members].all(axis=0)), back)
        places.append(place)
    if not between and not at:
        hosts = ", ".join(dict.fromkeys(place.entity for place in places))
        notes.append(f"the capture was made at {hosts}: {ends.why}")
    side = Side(file, ends.client, [flow.members for flow in flows], places)
    why = "the capture was not made at one of the connection's ends" if between else ""
    return Chosen((side,), tuple(flows), tuple(reverse), tuple(notes), why, _packets(side))


def _bytes(connections: Array, client: Ints) -> Array:
    """(n, 2): payload of the client, of the server."""
    rows = np.arange(len(connections))
    return np.stack([connections["bytes"][rows, client], connections["bytes"][rows, 1 - client]], axis=1)


def _packets(side: Side) -> int:
    return sum(int(side.scanned.connections["packets"][members].sum()) for members in side.members)


def _passing(flow: CapturedFlow, back: bool) -> tuple[CapturedFlow, Place]:
    """The flow of a capture between the hosts, at a place before the data's receiver."""
    if back:
        return replace(flow, client=BEFORE + flow.client), Place(BEFORE + flow.client, 0)
    return replace(flow, server=BEFORE + flow.server), Place(BEFORE + flow.server, 1)


def _at_end(flow: CapturedFlow, here: Bools, back: bool) -> tuple[CapturedFlow, Place]:
    """The flow of a capture at one end; of one within a host at the data's sender, the other end then has another
    name."""
    client, server = (bool(end) for end in here)
    if client and server:
        client, server = not back, back
        flow = replace(flow, client=flow.client + _PEER) if server else replace(flow, server=flow.server + _PEER)
    return flow, Place(flow.client, 0) if client else Place(flow.server, 1)


def _two(first: Scanned, second: Scanned, rows: Ints, at: At | None) -> Chosen:
    if at == "between":
        raise PlanError("--at between: want one file; of two each was captured at an end")
    client = clients(first.connections)
    common = common_of(first, second, client, rows)
    ours, theirs = first.connections[common.first], second.connections[common.second]
    at_client = first_is_client(ours, theirs)
    if at is not None:
        at_client = np.full(len(ours), at == "client")
    elif at_client is None:
        raise PlanError(
            f"{first.path} and {second.path}: want --at client or --at server for the first: no handshake shows which "
            "is whose"
        )  # fmt: skip
    flows, left = flows_of(first.connections, client, common.first)
    notes = [f"{left} connections are left out: more than can be shown"] if left else []
    for file, some in ((first, ours), (second, theirs)):
        if more := len(file.connections) - len(some):
            notes.append(f"{file.path.name}: {more} connections are in this file alone and are left out")
    place_of = np.zeros(len(first.connections), np.int64)
    place_of[common.first] = np.arange(len(common.first))
    pairs = [place_of[flow.members] for flow in flows]
    if flows_split := [f.name for f, pair in zip(flows, pairs, strict=True) if len(np.unique(at_client[pair])) > 1]:
        raise PlanError(f"{first.path}: want --at: it looks like the client's and the server's of {flows_split[0]}")
    client_of = _both_clients(first, second, common)
    sides = []
    for number, (file, numbers) in enumerate(((first, common.first), (second, common.second))):
        places = [Place(flow.client, 0) if at_client[pair[0]] == (number == 0) else Place(flow.server, 1)
                  for flow, pair in zip(flows, pairs, strict=True)]  # fmt: skip
        sides.append(Side(file, client_of[number], [numbers[pair] for pair in pairs], places))
    way = _bytes(first.connections, client_of[0])
    reverse = tuple(bool(way[flow.members, 1].sum() > way[flow.members, 0].sum()) for flow in flows)
    rough = rough_offset(*((ours, theirs) if at_client[0] else (theirs, ours)))
    sides[1] = replace(sides[1], clock=Clock(rough if at_client[0] else -rough))
    return Chosen(tuple(sides), tuple(flows), reverse, tuple(notes), "", sum(map(_packets, sides)))


def _both_clients(first: Scanned, second: Scanned, common: Common) -> tuple[Ints, Ints]:
    """The clients' ends of all connections of both files; of those in one alone they do not count."""
    made = []
    for file, numbers, client in ((first, common.first, common.client[0]), (second, common.second, common.client[1])):
        of_file = np.zeros(len(file.connections), np.int64)
        of_file[numbers] = client
        made.append(of_file)
    return made[0], made[1]


def memory_bytes(chosen: Chosen) -> int:
    """Memory that the analysis takes at most: rules hold the columns of one flow at a time."""
    sizes = [
        sum(int(side.scanned.connections["packets"][side.members[number]].sum()) for side in chosen.sides)
        for number in range(len(chosen.flows))
    ]
    return sum(sizes) * ROW_MEMORY + max(sizes) * ROW_OF_FLOW_MEMORY


def check_memory(chosen: Chosen, files: Sequence[Path]) -> None:
    """Raises TestbedError where there is not enough memory for the packets of these connections."""
    need, there = memory_bytes(chosen), free_mb() << 20
    if need > there:
        raise TestbedError(
            f"{', '.join(map(str, files))}: {chosen.packets} packets of TCP take {size_text(need)} of memory to "
            f"analyse; this machine has {size_text(there)} free: want fewer packets (--only has some connections)"
        )


def need_bytes(chosen: Chosen) -> int:
    """Space that the run takes on the disk, with its temporary files."""
    return chosen.packets * ROW_DISK + POINT_KEPT


def records_and_notes(chosen: Chosen, work: Path) -> tuple[Records, list[str]]:
    """The records, of two files in the first one's time.  Raises RecordsError."""
    records = records_of(chosen.sides, chosen.flows, chosen.reverse, work)
    if len(chosen.sides) == 1:
        host = {place.entity: HostClock(0, 0.0, "the capture's own") for place in chosen.sides[0].places}
        return with_clocks(records, host), []
    first, second = chosen.sides
    of_first = _rows_of_first(records, chosen)
    at_client = first.places[0].leaving == 0
    result = clock_of(delays_of(records, of_first == at_client))
    hosts = {place.entity: 0 for side in chosen.sides for place in side.places}
    if result is None:
        why = "their clocks can't be compared: no packet is in both files, each way"
        return with_clocks(records, {host: HostClock(0, float(1 << 62), "unknown") for host in hosts}), [why]
    found, error_ns = result
    if error_ns < 0:
        raise PlanError(
            f"{first.scanned.path} and {second.scanned.path}: want the capture of the client and of the server; their "
            "shortest round trip would be negative: exchange --at client and --at server"
        )
    sign = 1 if at_client else -1
    from_ns = found.from_ns + records.outcome.t0_ns + second.clock.offset_ns
    clock = Clock(second.clock.offset_ns + sign * found.offset_ns, sign * found.drift_ppb, from_ns)
    if found.offset_ns or found.drift_ppb:
        records = records_of((first, replace(second, clock=clock)), chosen.flows, chosen.reverse, work)
    way = "ahead of" if clock.offset_ns > 0 else "behind"
    apart = f"is {show_time(abs(clock.offset_ns))} {way}" if clock.offset_ns else "agrees with"
    text = (
        f"the second file's clock {apart} the first one's, to within {show_time(error_ns)} (half of the shortest round "
        "trip)"
    )
    text += f", and drifts by {clock.drift_ppb / 1000:.3g} ppm" if clock.drift_ppb else ""
    source = "least one-way delays"
    return with_clocks(records, {host: HostClock(0, error_ns / 2, source) for host in hosts}), [text + ": taken off"]


def _rows_of_first(records: Records, chosen: Chosen) -> Bools:
    """Whether a row is of the first file."""
    (flow, _), (where, names) = records.codes("flow"), records.codes("where")
    code = np.array([names.index(place.entity) for place in chosen.sides[0].places])
    return np.asarray(where == code[flow])


def with_what_is_known(records: Records, chosen: Chosen, notes: Sequence[str]) -> Records:
    """The records with all notes, and with the flows that no rule judges."""
    unjudged = {flow.name: chosen.unjudged for flow in chosen.flows} if chosen.unjudged else _of_smaller_packets(chosen)
    outcome = replace(records.outcome, unjudged=unjudged)
    return replace(records, notes=[*chosen.notes, *notes, *records.notes], outcome=outcome, memo={})


def _of_smaller_packets(chosen: Chosen) -> dict[str, str]:
    """Flows with an ICMP message that asks for smaller packets: what they send again is no evidence of loss."""
    why = "an ICMP message asked for smaller packets, which are sent at once"
    return {
        flow.name: why
        for number, flow in enumerate(chosen.flows)
        if any(side.scanned.connections["too_big"][side.members[number]].any() for side in chosen.sides)
    }


def analyse_files(files: Sequence[Path], writer: RunWriter, chosen: Chosen, command: str) -> Run:
    """Write the run of the chosen connections, and its report.  Raises RecordsError, TestbedError."""
    started, clock = datetime.now(UTC), time.monotonic()
    try:
        begin_work(writer.path)
        with naming_path(writer.path, "nothing was kept"):
            records, notes = records_and_notes(chosen, writer.path / WORK)
        records = with_what_is_known(records, chosen, notes)
        records, found = assess_capture(records)
        point_id = hashlib.sha256(records.digest().encode()).hexdigest()[:12]
        files_text = " ".join(path.name for path in files)
        point = replace(records.point, id=point_id, tuples=(("capture", "file", files_text),))
        records = replace(records, point=point, memo={})
        result = PointResult(
            point=point.to_json(),
            verdict=found.verdict,
            reason="; ".join(filter(None, [found.reason, *(note.replace("; ", ": ") for note in records.notes)])),
            wall_s=round(time.monotonic() - clock, 3),
            virtual_s=records.outcome.length_ns / 1e9,
            outcome=records.outcome.to_json(),
            metrics=found.metrics,
            records=records,
            stalls=found.stalls,
            violations=found.violations,
        )
        place = write_point(writer.path, result)
        del records, result, found
        give_back()  # the report reads them again
        versions = collect_versions()
        writer.write_versions(versions)
        loaded = load_point(place)
        summary = build_summary(
            writer.path, plan=_PLAN, started=started, wall_s=time.monotonic() - clock, points=[loaded],
            versions=versions, about=f"capture {files_text}", provenance={"reproduce": command},
        )  # fmt: skip
        write_report(Run(writer.path, summary, (loaded,)))
        clear_work(writer.path / WORK)
        final = writer.finish(summary)
        return Run(final, summary, (replace(loaded, path=final / "points" / point_id),))
    except BaseException:
        clear_work(writer.path / WORK)
        writer.discard()
        raise
