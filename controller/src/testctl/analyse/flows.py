# SPDX-License-Identifier: Apache-2.0
"""Connections as flows: each its own up to a number, the most unhappy first; the others by their servers."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testctl.analyse.ends import addresses
from testctl.records.schema import Array, Ints

ALONE = 100
"""Connections that are a flow of their own."""
GROUPS, OF_GROUP = 200, 1024
"""Further flows, and the connections in each; others are counted and not analysed."""
CLIENTS = "clients"


@dataclass(frozen=True)
class CapturedFlow:
    """A flow of a capture: the numbers of its connections, which have these clients and this server.

    name    "10.0.0.1:51000-10.0.0.2:443", "fd00::1.51000-fd00::2.443"; of several connections without the client's port
    client, server   names of its ends: addresses, "clients" for several
    """

    name: str
    client: str
    server: str
    client_port: int
    server_port: int
    family: int
    members: Ints


def text_of(connection: Array, end: int) -> str:
    """The address of an end."""
    packed = bytes(connection["address"][end])
    return str(ipaddress.ip_address(packed[:4] if connection["family"] == 4 else packed))


def unhappiness(connections: Array) -> Array:
    """By what connections are listed: packets sent again, SYNs too, zero windows, resets, then silence and bytes."""
    again = connections["again"].sum(axis=1) + np.maximum(connections["syns"].astype(np.int64) - 1, 0).sum(axis=1)
    trouble = again + connections["zero_windows"].sum(axis=1) + connections["resets"].sum(axis=1)
    return np.asarray(np.lexsort((connections["bytes"].sum(axis=1), connections["silent_ns"], trouble))[::-1])


def flows_of(connections: Array, client: Ints, chosen: Ints) -> tuple[list[CapturedFlow], int]:
    """(flows of the chosen connections in the order of their first packets, number of connections left out)."""
    ranked = chosen[np.argsort(_rank(connections)[chosen], kind="stable")]
    alone, rest = ranked[:ALONE], ranked[ALONE:]
    names: Counter[str] = Counter()
    made = [_flow(connections, client, np.array([index]), names) for index in np.sort(alone)]
    groups = _groups(connections, client, np.sort(rest))
    made += [_flow(connections, client, group, names) for group in groups[:GROUPS]]
    return made, sum(len(group) for group in groups[GROUPS:])


def _rank(connections: Array) -> Ints:
    order = unhappiness(connections)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _groups(connections: Array, client: Ints, rest: Ints) -> list[Ints]:
    """The connections of each server's address and port, the largest groups first, in pieces of OF_GROUP."""
    if not len(rest):
        return []
    server = 1 - client[rest]
    port = connections["port"][rest, server].astype(np.int64)
    _, address = np.unique(addresses(connections[rest])[np.arange(len(rest)), server], return_inverse=True)
    _, group = np.unique(address.reshape(-1) << 16 | port, return_inverse=True)
    order = np.argsort(group, kind="stable")
    pieces = np.split(rest[order], np.flatnonzero(np.diff(group[order])) + 1)
    pieces.sort(key=len, reverse=True)
    return [piece[low : low + OF_GROUP] for piece in pieces for low in range(0, len(piece), OF_GROUP)]


def _flow(connections: Array, client: Ints, members: Ints, names: Counter[str]) -> CapturedFlow:
    first = connections[members[0]]
    end = int(client[members[0]])
    server, server_port = text_of(first, 1 - end), int(first["port"][1 - end])
    ours = {text_of(connections[index], int(client[index])) for index in members[:2]}
    if len(members) > 1:
        ours = _clients(connections, client, members)
    source = next(iter(ours)) if len(ours) == 1 else CLIENTS
    port = int(first["port"][end]) if len(members) == 1 else 0
    sign = "." if first["family"] == 6 else ":"  # as tcpdump writes them
    name = f"{source}{f'{sign}{port}' if port else ''}-{server}{sign}{server_port}"
    names[name] += 1
    name += f"#{names[name]}" if names[name] > 1 else ""
    return CapturedFlow(name, source, server, port, server_port, int(first["family"]), members)


def _clients(connections: Array, client: Ints, members: Ints) -> set[str]:
    _, which = np.unique(addresses(connections[members])[np.arange(len(members)), client[members]], return_index=True)
    return {text_of(connections[members[index]], int(client[members[index]])) for index in which[:2].tolist()}


def names_of(flows: Sequence[CapturedFlow]) -> list[str]:
    """The hosts of these flows, each once."""
    return list(dict.fromkeys(name for flow in flows for name in (flow.client, flow.server)))
