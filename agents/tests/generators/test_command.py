# SPDX-License-Identifier: Apache-2.0
"""Commands of a plan as a generator: the lab's and netns' agents run them, a daemon on a rack never does."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.engine.factory import AgentConfig, new_task
from testctl_agent.generators import command, tgen
from testctl_agent.params.flow.command import SPECS, argv
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

from agents.tests.daemon.daemons import calling, running, written

OPTIONS: dict[str, Value] = {"address": "127.0.0.1", "bind": "127.0.0.2", "client_port": 40000, "start_ns": 0}


def test_places_of_a_command_line() -> None:
    """Of known names only, within words, and nothing else is changed: no shell reads it."""
    words = argv(
        "get 'http://{address}:{server_port}/a b' {bind}:{client_port} {other} $HOME", OPTIONS | {"server_port": 80}
    )
    assert words == ["get", "http://127.0.0.1:80/a b", "127.0.0.2:40000", "{other}", "$HOME"]


@pytest.mark.parametrize("text", ["", " ", "'unclosed", "a\nb", "''", 3])
def test_what_is_no_command_line(text: object) -> None:
    for spec in SPECS:
        with pytest.raises(ValueError, match="want a command line"):
            spec.type.parse(text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_is_waited_for_and_ended_and_a_client_ends(tmp_path: Path) -> None:
    if not tgen.binary():
        pytest.skip("tgen is not built")
    (tmp_path / "page").write_text("text\n")
    given = OPTIONS | {
        "server_port": free_port(),
        "server": f"{sys.executable} -m http.server {{server_port}} -b {{address}} -d {tmp_path}",
        "client": "curl -sS http://{address}:{server_port}/page",
    }
    ends = {}
    for side in ("server", "client"):
        (tmp_path / side).mkdir()
        ends[side] = new_task("generator", "command", given | {"side": side}, tmp_path / side, commands=True)
        ends[side].start()
    assert ends["client"].wait(120)
    assert not ends["server"].poll()
    ends["server"].stop()
    assert ends["client"].result()["stdout"] == "text"
    assert '"GET /page HTTP/1.1" 200' in ends["server"].result()["stderr"]
    assert ends["server"].files() == [command.STDOUT, command.STDERR]


def test_a_client_that_fails_and_a_server_that_ends(tmp_path: Path) -> None:
    given = OPTIONS | {"server_port": free_port(), "client": "sh -c 'echo why >&2; exit 3'", "server": "sh -c 'exit 4'"}
    client = new_task("generator", "command", given | {"side": "client"}, tmp_path, commands=True)
    client.start()
    assert client.wait(120)
    with pytest.raises(TestbedError, match="command, client: exit 3: why"):
        client.result()
    (tmp_path / "server").mkdir()
    server = new_task("generator", "command", given | {"side": "server"}, tmp_path / "server", commands=True)
    with pytest.raises(TestbedError, match="command, server: ended before it was ready"):
        server.start()


def test_an_agent_of_its_own_accord_runs_none(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="this agent runs no commands; want the testbed lab or netns"):
        new_task("generator", "command", OPTIONS, tmp_path)
    assert AgentConfig.__dataclass_fields__["commands"].default is False


def test_a_daemon_runs_no_command_from_the_wire(tmp_path: Path) -> None:
    """Not even one whose configuration is asked to allow it."""
    made = tmp_path / "made"
    options = {"client": pb.Value(text=f"touch {made}"), "server": pb.Value(text=f"touch {made}"),
               "server_port": pb.Value(integer=1), "address": pb.Value(text="127.0.0.1")}  # fmt: skip
    with running(written(tmp_path)), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        for side in ("client", "server"):
            request = pb.StartRequest(
                task=side, kind="generator", name="command", options=options | {"side": pb.Value(text=side)}
            )
            code, words = caller.refused("Start", request)
            assert code == grpc.StatusCode.FAILED_PRECONDITION
            assert "this agent runs no commands" in words
    assert not made.exists()
