# SPDX-License-Identifier: Apache-2.0
"""Generators and switch back ends of other distributions: made up, missing, broken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon import config
from testctl_agent.engine.factory import new_task
from testctl_agent.params import others
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.switch import backend
from testctl_agent.system import entry_points, identity
from testctl_agent.tasks.task import Task

from agents.tests.daemon.daemons import calling, running, written
from agents.tests.system.made_up import BACKEND, BACKENDS, GENERATOR, GENERATORS, on_path, write

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Write a made-up distribution and put it on the path; nothing of it is left after the test."""
    with ExitStack() as stack:

        def put(name: str, words: Mapping[str, Mapping[str, str]], texts: Mapping[str, str]) -> Path:
            place = write(tmp_path / name, name, words, texts)
            stack.enter_context(on_path(place))
            return place

        yield put


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where no other distribution is installed."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    entry_points.forget()
    yield
    entry_points.forget()


def made_up(install: Install) -> Path:
    return install(
        "testctl-made-up",
        {GENERATORS: {"posts": "made_up_testctl.posts"}, BACKENDS: {"loom": "made_up_testctl.loom"}},
        {"made_up_testctl.__init__": "", "made_up_testctl.posts": GENERATOR, "made_up_testctl.loom": BACKEND},
    )


def ended(task: Task) -> dict[str, Any]:
    task.start()
    assert task.wait(120.0)
    return dict(task.result())


def test_are_found_and_run(install: Install, tmp_path: Path) -> None:
    made_up(install)
    assert others.generator().parse("posts") == "posts"
    assert "posts" in others.generator().want
    assert "loom" in others.backend().schema()["enum"]
    assert ended(new_task("generator", "posts", {"side": "client", "bytes": 5}, tmp_path))["bytes"] == 5
    switch = backend.load("loom", {"s1:a": "p1"}, {})
    switch.apply("p1", "rate", 8)
    assert (switch.name, switch.read("p1", "rate")) == ("loom", 8)


def test_a_daemon_runs_what_its_configuration_names(install: Install, tmp_path: Path, monkeypatch: Any) -> None:
    place = made_up(install)
    monkeypatch.setenv("PYTHONPATH", str(place))
    with running(written(tmp_path, generators=["posts"])), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        assert caller.call("Describe").version == identity.version(others.packages(["posts"])) != identity.version()
        caller.start("bulk-server", "generator", "posts", side="server")
        status = caller.call("Wait", pb.WaitRequest(task="bulk-server", timeout_ns=10**10))
        assert json.loads(status.result)["role"] == "receiver"


def test_a_daemon_runs_nothing_that_its_configuration_does_not_name(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(made_up(install)))
    with running(written(tmp_path)), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        assert caller.call("Describe").version == identity.version()
        code, words = caller.refused("Start", pb.StartRequest(task="x", kind="generator", name="posts"))
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert "no generator named 'posts'; there are: iperf3, probe, tgen; want posts among the generators" in words


def test_a_switch_s_daemon_has_its_back_end(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(made_up(install)))
    path = written(tmp_path, name="s1", kind="switch", devices={"s1:alpha": "lo"}, backend="loom")
    with running(path), calling(f"unix:{tmp_path}/alpha.sock") as caller:
        described = caller.call("Describe")
        assert described.notes["forwarding"] == "made up"
        assert described.version == identity.version(others.packages([], "loom"))


def test_the_version_covers_the_code_of_what_is_named(install: Install) -> None:
    place = made_up(install)
    before = identity.version(others.packages(["posts", "tgen"]))
    assert before == identity.version(others.packages([], "loom")), "one package"
    (place / "made_up_testctl" / "loom.py").write_text(BACKEND + "\n")
    identity.version.cache_clear()
    assert identity.version(others.packages(["posts"])) != before
    assert identity.version(others.packages(["tgen"], "ebpf")) == identity.version()


@pytest.mark.usefixtures("nothing_else")
def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    where = "which comes with the distribution testctl-hardware: it is not installed"
    with pytest.raises(ValueError, match=rf"^want one of command, iperf3, tgen; got 'trex', {where}$"):
        others.generator().parse("trex")
    with pytest.raises(ValueError, match=rf"^want one of ebpf, netem; got 'tofino', {where}$"):
        others.backend().parse("tofino")
    with pytest.raises(TestbedError, match=rf"^switch back end: want one of ebpf.*; got 'tofino', {where}$"):
        backend.load("tofino", {}, {})
    with pytest.raises(TestbedError, match=rf"^no generator .*: iperf3, probe, tgen; 'trex', {where}"):
        new_task("generator", "trex", {}, tmp_path)
    switch = json.loads(written(tmp_path, name="s1", kind="switch", devices={"s1:a": "lo"}).read_text())
    with pytest.raises(PlanError, match=rf'a.json: backend: want one of ebpf.*netem; got "tofino", {where}$'):
        config.parse(json.dumps(switch | {"backend": "tofino"}), "a.json")
    with pytest.raises(PlanError, match=rf'a.json: generators: want one of iperf3, tgen; got "trex", {where}$'):
        config.parse(json.dumps(json.loads(written(tmp_path).read_text()) | {"generators": ["trex"]}), "a.json")
    with pytest.raises(ValueError, match=r"^want one of command, iperf3, tgen; got 'netperf'$"):
        others.generator().parse("netperf")


@pytest.mark.parametrize(
    ("value", "text", "words"),
    [
        (
            "broken_testctl",
            "import nowhere_at_all",
            "want the module broken_testctl; got ModuleNotFoundError: No module",
        ),
        ("broken_testctl", "raise SystemExit(3)", "want the module broken_testctl; got SystemExit: 3"),
        ("broken_testctl", "1 / 0", "want the module broken_testctl; got ZeroDivisionError: division by zero"),
        ("broken_testctl", "x = (", "want the module broken_testctl; got SyntaxError: "),
        ("nowhere_testctl", "", "want the module nowhere_testctl; got ModuleNotFoundError"),
        ("broken_testctl", "", "want a function task in broken_testctl; got none"),
        ("broken_testctl:task", "", "want the name of a module; got 'broken_testctl:task'"),
    ],
)
def test_what_is_broken_is_named_and_the_others_are_there(
    install: Install, tmp_path: Path, value: str, text: str, words: str
) -> None:
    made_up(install)
    install("testctl-broken", {GENERATORS: {"broken": value}}, {"broken_testctl": text})
    with pytest.raises(TestbedError) as refused:
        new_task("generator", "broken", {}, tmp_path)
    assert str(refused.value).startswith(f"generator 'broken' of the distribution testctl-broken: {words}")
    assert ended(new_task("generator", "posts", {"side": "server"}, tmp_path))["role"] == "receiver"
    assert {"broken", "posts"} <= set(entry_points.GENERATORS.names())


def test_a_word_of_two_distributions_is_neither_s(install: Install) -> None:
    made_up(install)
    install("testctl-also", {BACKENDS: {"loom": "also_testctl"}}, {"also_testctl": BACKEND})
    with pytest.raises(TestbedError, match=r"'loom': want it of one distribution; got testctl-also, testctl-made-up$"):
        backend.load("loom", {}, {})


def test_the_agent_s_own_words_come_first(install: Install) -> None:
    install("testctl-also", {BACKENDS: {"netem": "also_testctl"}}, {"also_testctl": BACKEND})
    assert backend.load("netem", {"s1:a": "a"}, {}).name == "netem"


def test_nothing_is_looked_up_for_the_agent_s_own_words() -> None:
    """importlib.metadata takes a third of the time in which the lab's first process imports all it needs."""
    text = (
        "import sys; from pathlib import Path; from testctl_agent.engine.factory import new_task\n"
        "from testctl_agent.params import registry; from testctl_agent.switch import backend\n"
        "specs = registry.specs(); backend.load('netem', {'s:a': 'a'}, {})\n"
        "specs['flow']['generator'].type.parse('tgen'); specs['switch']['backend'].type.parse('ebpf')\n"
        "new_task('generator', 'tgen', {'side': 'server', 'address': '127.0.0.1'}, Path('.'))\n"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_what_is_known_to_come_with_a_distribution_does() -> None:
    """The words for which errors name a distribution of this repository are those that it declares."""
    import tomllib

    files = sorted((Path(__file__).parents[3] / "plugins").glob("*/pyproject.toml"))
    declared = [tomllib.loads(file.read_text(encoding="utf-8"))["project"] for file in files]
    for group in (entry_points.GENERATORS, entry_points.BACKENDS):
        words = {word: one["name"] for one in declared for word in one.get("entry-points", {}).get(group.name, ())}
        assert dict(group.known) == words
