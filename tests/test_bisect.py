# SPDX-License-Identifier: Apache-2.0
"""`testctl bisect` in the lab.

The build of a kernel has a stand-in here: a commit's "kernel" is the lab's built 6.1 or 6.12, as a file of the commit
says, and one whose file says nothing of the kind does not build.  All the rest is real: git, labs, verdicts, records.
tests/test_bisect_kernel.py builds real kernels.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.bisect.measure import COMMITS
from testctl.cli.main import main
from testctl.lab import kernel as kernels
from testctl.lab.built import built
from testctl.lab.kernel import BuildError, Kernel, Progress
from testctl.lab.source import KernelSource
from testctl.results import layout, load_point
from testctl.testbeds.code_key import CodeKey

from controller.tests.bisect import trees

pytestmark = pytest.mark.lab

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 5ms]
  - [bulk, bytes, 50kB]
expect:
  - {name: all arrives, metric: payload_bytes, equals: 50000}
"""

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """(exit code, output) of `testctl bisect plan.yaml --source tree` in a directory with both."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN)

    def one(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["testctl", "bisect", "plan.yaml", "--source", "tree", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return one


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits whose kernels were built, which is where the stand-in is."""
    made: list[str] = []

    def build(source: KernelSource, progress: Progress, jobs: int) -> Kernel:
        made.append(source.revision)
        release = trees.git(source.origin, "show", f"{source.revision}:net/tcp.c")
        kernel = built(release) if release in ("6.1", "6.12") else None
        if kernel is None:
            raise BuildError("kernel source does not build: net/tcp.c:1:1: error: expected a release\nmore lines")
        where = tmp_path / "kernels" / source.revision
        shutil.copytree(kernel.directory, where, dirs_exist_ok=True)
        return Kernel(source.name, source.revision[:16], where)

    def keep(kernel: Kernel, source: KernelSource) -> None:
        (kernel.directory / "sources.txt").write_text("net/tcp.c\n")

    monkeypatch.setattr(kernels, "build", build)
    monkeypatch.setattr("testctl.bisect.compiled.keep", keep)
    return made


@pytest.fixture
def history(tmp_path: Path, builds: list[str]) -> list[str]:
    """Eight commits: the fourth does not build, the sixth brings another kernel, others change nothing of it."""
    if built("6.1") is None or built("6.12") is None:
        pytest.skip("the lab's kernels 6.1 and 6.12 are not built")
    tree = tmp_path / "tree"
    trees.new_tree(tree)
    texts = {"a release": {"net__tcp_c": "6.12"}, "a word": {"README": "a word"}, "other code": {"net__sctp_c": "1\n"},
             "does not build": {"net__tcp_c": "none"}, "builds again": {"net__tcp_c": "6.12"},
             "an older kernel": {"net__tcp_c": "6.1"}, "more code": {"net__sctp_c": "2\n"},
             "more words": {"README": "words"}}  # fmt: skip
    return [trees.commit(tree, title, **files) for title, files in texts.items()]


def test_the_commit_is_found_and_the_search_goes_on_after_an_interrupt(
    history: list[str], call: Call, builds: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = ("--good", history[0], "--bad", "main", "--digest", "--out", "found")
    stopped = _interrupted_after(3, monkeypatch)
    code, said = call(*ends)
    assert code == 130, said
    assert "go on with --resume" in said
    stopped.undo()
    assert call(*ends)[0] == 2, "it is there already"
    known = list(builds)
    code, said = call(*ends, "--resume")
    assert code == 0, said
    assert f"first bad commit: {history[5]}\n  an older kernel\n" in said
    assert "skip" in said
    assert "does not build: kernel source does not build: net/tcp.c:1:1: error: expected a release" in said
    assert "first difference: packet " in said
    found = json.loads(Path("found/bisect.json").read_text())
    assert (found["culprit"]["id"], found["before"]["id"]) == (history[5], history[4])
    assert found["changes"][0]["first"]["fields"]
    assert {step["verdict"] for step in found["steps"]} == {"good", "bad", "skip"}
    assert len(builds) == len(set(builds)), "each is built once"
    assert not set(builds) & {history[1], history[2], history[6]}, "those that change nothing compiled are not"
    assert builds[: len(known)] == known
    assert "git bisect" in Path("found/bisect.log").read_text()
    assert Path("found/bisect.md").read_text().startswith("# Bisection by the digest of the records\n")
    assert trees.git(tmp_path / "tree", "worktree", "list").count("\n") == 0


def _interrupted_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Ctrl-C when so many commits have been judged."""
    from testctl.bisect import write

    context = pytest.MonkeyPatch()
    line_of, count = write.line_of, [0]

    def counted(step: object) -> str:
        count[0] += 1
        if count[0] == steps:
            raise KeyboardInterrupt
        return line_of(step)  # type: ignore[arg-type]

    context.setattr(write, "line_of", counted)
    return context


def test_what_cannot_be_bisected(history: list[str], call: Call) -> None:
    """The ends are the same by the plan's verdict; the only good candidates do not build; one end does not build."""
    code, said = call("--good", history[0], "--bad", "main", "--out", "same")
    assert code == 2
    assert "are the same by the verdict of the plan: pass; there is nothing to bisect" in said
    code, said = call("--good", history[0], "--bad", history[3], "--digest", "--out", "broken")
    assert code == 3
    assert "want an end that can be judged: kernel source does not build" in said


def test_the_kernel_of_one_host(history: list[str], call: Call) -> None:
    """The other has that of the plan, and the lab one time."""
    code, said = call("--good", history[4], "--bad", "main", "--digest", "--on", "receiver", "--out", "found")
    assert code == 0, said
    assert f"first bad commit: {history[5]}\n  an older kernel\n" in said
    senders = built("6.12")
    assert senders is not None
    for commit in (history[4], history[-1]):
        (place,) = (Path("found") / COMMITS / commit / layout.POINTS).iterdir()
        keys = CodeKey.parse(load_point(place).verdict_file.code_key).kernel
        assert keys == f"{senders.key},{commit[:16]}"


def test_bad_input(history: list[str], call: Call, tmp_path: Path) -> None:
    """Refused before anything is built."""
    ends = ("--good", history[0], "--bad", "main")
    for words, text in (
        (("--good", "main", "--bad", history[0]), "swap the two"),
        (("--good", "main", "--bad", "main"), "want two commits"),
        (("--good", "nothing", "--bad", "main"), "--good: "),
        ((*ends, "--metric", "throughput"), "no metric throughput; did you mean"),
        ((*ends, "--expect", "nothing"), "want an expectation of the plan; there are: all arrives"),
        ((*ends, "--digest", "--metric", "jain"), "want one of --metric, --expect and --digest"),
        ((*ends, "--point", "zz"), "--point 'zz': want the id of one point"),
        ((*ends, "--on", "nobody", "--digest"), "no host, switch, port, flow or group named nobody"),
        ((*ends, "--source", "nowhere"), "there is no such directory"),
        ((*ends, "--source", str(tmp_path)), "git"),
    ):
        code, said = call(*words)
        assert code in (2, 3), said
        assert text in said, said
        assert "Traceback" not in said


def test_a_verdict_that_does_not_repeat(history: list[str], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run of an end is on another kernel here, as if the first had been luck."""
    from testctl.bisect.measure import Bench

    real = Bench.again

    def again(bench: Bench, commit: str) -> object:
        other = built("6.1")
        assert other is not None
        return bench._run(commit, other, bench.directory / "again") if commit == history[0] else real(bench, commit)

    monkeypatch.setattr(Bench, "again", again)
    code, said = call("--good", history[0], "--bad", "main", "--digest")
    assert code == 3
    assert "is flaky: by the digest of the records it is" in said
