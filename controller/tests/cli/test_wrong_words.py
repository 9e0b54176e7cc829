# SPDX-License-Identifier: Apache-2.0
"""Whatever words a user gives a command: a sentence and exit code 2, never a traceback."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from testctl.cli import panels
from testctl.cli.main import app
from testctl.curves import curves

from controller.tests.serve.conftest import make_run

PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 1s]
expect:
  - {metric: throughput_bps, min: 1}
"""


def commands(command: Any = None, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that name it."""
    command = typer.main.get_command(app) if command is None else command
    for name, found in command.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*before, name))
        else:
            yield (*before, name), found


ALL = dict(commands())


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a plan, a run (of the points `loss` and `ack_owed`), a file and an empty directory."""
    where = tmp_path_factory.mktemp("words")
    make_run(where / "results", 1).rename(where / "run")
    (where / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (where / "file").write_text("no run, no plan\n", encoding="utf-8")
    (where / "empty").mkdir()
    (where / "damaged" / "points" / "loss").mkdir(parents=True)
    (where / "damaged" / "summary.json").write_text(json.dumps({"points": 3}), encoding="utf-8")
    return where


Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(there: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[..., tuple[int, str, str]]) -> Call:
    """(exit code, output) of a command line, in that directory; an exception is a failure."""
    monkeypatch.chdir(there)

    def one(*words: str) -> tuple[int, str]:
        code, out, err = command(*words)
        return code, out + err

    return one


def refused(call: Call, *words: str) -> str:
    code, said = call(*words)
    assert code == 2, (words, code, said)
    assert said.strip(), words
    assert "Traceback" not in said, words
    assert "a bug" not in said, words
    return said


@pytest.mark.parametrize("names", ALL, ids=" ".join)
def test_what_no_command_takes(call: Call, names: tuple[str, ...]) -> None:
    refused(call, *names, "--no-such-option")
    refused(call, *names, *["x"] * 40, "--no-such-option")
    given = ALL[names].params
    if any(param.param_type_name == "argument" and param.required for param in given):
        refused(call, *names)
    for param in given:
        if param.param_type_name == "option" and param.is_flag:
            refused(call, *names, f"{param.opts[0]}=3")


LONG = "x" * 300
RUNS = ("none", "file", "empty", "damaged", "", "../", "run/points", "plan.yaml", LONG)

OF_RUNS = ("show {}", "report {}", "compare run {}", "compare {} run", "series {} loss --flow bulk", "shrink {} loss",
           "replay {} loss", "reproduce {} loss")  # fmt: skip
FILES = ("none.yaml", "file", "empty", "", "run/summary.json")
OF_FILES = ("plan {}", "run {}", "aa {} --testbed netns", "nightly {} --budget 1m", "papers {}", "topologies ./{}")
SETS = ("--set x", "--set hosts.cc=", "--set hosts.nonsense=1", "--set =", "--set hosts.cc=[", "--without hosts",
        "--without hosts.mtu", "--kernel ../x", "--kernel ''", "--testbed nowhere", "--testbed ''", "--max-points 1",
        "--set bulk.duration=soon", "--set a.b.c=1", "--set 'hosts.cc=\x1b[31m'")  # fmt: skip
OTHERS = """
run plan.yaml --cluster 127.0.0.1:1 --testbed netns
plan plan.yaml --testbed empty
run plan.yaml --testbed file
series run zz --flow bulk
series run loss --flow foo
series run loss --flow bulk --metric foo
series run '' --flow bulk
series run loss --flow bulk --bin 10
series run loss --flow bulk --bin 0ns
series run loss --flow bulk --bin 1ns
series run loss --flow bulk --bin=-1ms
series run loss --flow ''
params ratee
params ''
params mtu x
metrics jane
metrics ''
topologies pear
topologies ''
topologies --set n=1
topologies pair --set n
topologies pair --set =
topologies star --set hosts=many
topologies star --set hosts=²
topologies star --set hosts=99999999999999999999
new plan
new plan.yaml
new empty
new none/plan.yaml
new ''
new .yaml
run plan.yaml --on sender
run plan.yaml --insecure
run plan.yaml --affected-most 3
compare run run --results none
compare run run --jobs 2
compare run run --set hosts.cc=reno
run plan.yaml --failed-in none
run plan.yaml --failed-in file
run plan.yaml --failed-in damaged
run plan.yaml --failed-in run
run plan.yaml --failed-in ''
run plan.yaml --last-failed
run plan.yaml --last-failed --results none
run plan.yaml --set hosts.net.ipv4.tcp_no_such=1 --kernel ../x
plan plan.yaml --kernel 7.3 --set hosts.kernel=6.1
run plan.yaml --set 'bulk.duration=1 sec'
run plan.yaml --without sender1.cc
lab list x
lab rm
lab rm x
lab rm ../x
lab rm ''
shrink run zz
shrink run loss --expectation 99
replay run zz
replay run loss --packets none
compare run run --more-a none
show run --sarif none/x.json
history --results none
history --results file
history --results results --plan nothing
serve --results none
serve --results run --token-file none
serve --results file
keys keys ../a
keys keys ''
lab build ../x
lab build --source none
lab build a b --source empty
lab shell nowhere
cc new X-Y
cc new ../x
cc check ../x
cc check nowhere
restore none
restore file
nothing
lab nothing
aa plan.yaml --testbed netns --point zz
aa plan.yaml --testbed netns --jobs x
nightly plan.yaml --budget soon
nightly plan.yaml --budget 1m --like none
papers plan.yaml
run plan.yaml --jobs 0
run plan.yaml --out ''
run plan.yaml --out .
run plan.yaml --out /
run plan.yaml --out '' --resume
run plan.yaml --jobs x
plan plan.yaml --max-points 0
compare run run --least=-1
compare run run --seed x
history --results results --runs 1
serve --port 99999
keys keys a --days 0
lab build --jobs 0
shrink run loss --probes x
aa plan.yaml --testbed netns --repeat 1
nightly plan.yaml --jobs 257
"""
WRONG = [
    *(words.format(repr(run)) for words in OF_RUNS for run in RUNS),
    *(words.format(repr(file)) for words in OF_FILES for file in FILES),
    f"run plan.yaml --out {LONG}",
    *(f"{command} plan.yaml {more}" for command in ("plan",) for more in SETS),
    *OTHERS.strip().splitlines(),
]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said(call: Call, words: str) -> None:
    if words.endswith(("--testbed empty", "--testbed file")):
        pytest.importorskip("testctl_rack", reason="the distribution that reads inventories")
    refused(call, *shlex.split(words))


READ_ONLY = ("plan", "show", "series", "compare", "history", "metrics", "params", "schema", "topologies")
PIECES = ("run", "loss", "ack", "plan.yaml", "file", "empty", "damaged", "", "-", "--", "=", "é", "\x1b[31m", "0", "-1",
          "99999999999", "x" * 300, "bulk", "throughput", "hosts.cc=reno", "hosts.cc", "*", "[", "{}", "null",
          "1ms", "%s", "{0}")  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_any_words_in_any_order(call: Call, seed: int) -> None:
    """Of commands that only read."""
    rng = random.Random(seed)
    for _ in range(6):
        name = rng.choice(READ_ONLY)
        options = [
            opt for param in ALL[(name,)].params for opt in param.opts if opt.startswith("-") and opt not in WRITES
        ]
        words = [rng.choice(rng.choice((PIECES, options or PIECES))) for _ in range(rng.randrange(6))]
        code, said = call(name, *words)
        assert code in (0, 1, 2), (name, words, said)
        assert "Traceback" not in said, (name, words)
        assert "a bug" not in said, (name, words)


WRITES = ("--junit", "--sarif", "--markdown")
"""What would write a file named by chance."""


def test_the_help_of_series_names_every_curve(call: Call) -> None:
    code, said = call("series", "-h")
    assert code == 0
    assert all(name in said for name in curves())


def test_a_flow_without_a_limit_is_named_by_the_dry_run(call: Call, tmp_path: Path) -> None:
    plan = tmp_path / "fast.yaml"
    plan.write_text("topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 1s]\n")
    code, said = call("plan", str(plan))
    assert code == 0
    assert f"warning: {plan}:2:9: flow bulk has no limit: " in said


def test_version(call: Call) -> None:
    from testctl import __version__

    assert call("--version") == (0, f"testctl {__version__}\n")


@pytest.mark.parametrize("names", [(), ("lab",), ("cc",), *ALL], ids=" ".join)
def test_short_help_everywhere(call: Call, names: tuple[str, ...]) -> None:
    code, said = call(*names, "-h")
    assert code == 0
    assert "Usage: testctl" in said


def test_every_command_is_in_a_group(call: Call) -> None:
    """In the order in which a user needs them; none is left in typer's own group "Commands"."""
    said = call("-h")[1]
    groups = [panels.WRITE, panels.RUN, panels.LOOK, panels.COMPARE, panels.SET_UP]
    places = [said.index(f" {group} ") for group in groups]
    assert places == sorted(places)
    assert " Commands " not in said
