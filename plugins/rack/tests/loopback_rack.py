# SPDX-License-Identifier: Apache-2.0
"""Hosts of a rack on the loopback: agents with certificates of one authority."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from testctl_rack import pki
from testctl_rack.inventory_file import Machine, Rack

from agents.tests.daemon.daemons import Daemon, running, written


@contextmanager
def loopback_rack(where: Path, names: Sequence[str]) -> Iterator[tuple[Rack, dict[str, Daemon]]]:
    """A rack of hosts with these names, whose files lie in `where`, and their agents."""
    pki.make(where, names)
    machines, daemons = {}, {}
    with ExitStack() as stack:
        for name in names:
            with closing(socket.create_server(("127.0.0.1", 0))) as sock:
                listen = f"127.0.0.1:{sock.getsockname()[1]}"
            tls = {"authority": str(where / "ca.crt"), "controllers": [pki.CONTROLLER]}
            tls |= {"certificate": str(where / f"{name}.crt"), "key": str(where / f"{name}.key")}
            folder = where / name
            folder.mkdir()
            file = written(folder, name=name, devices={name: "lo"}, listen=listen, tls=tls)
            daemons[name] = stack.enter_context(running(file))
            machines[name] = Machine(name, "host", listen)
        yield Rack(where, machines, where), daemons
