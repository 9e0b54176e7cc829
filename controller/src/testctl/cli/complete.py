# SPDX-License-Identifier: Apache-2.0
"""What the shell offers after TAB: plans, runs, points and names.  What can't be read is not offered."""

from __future__ import annotations

import functools
import glob
import itertools
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import typer
from testctl_agent.params import registry

from testctl.lab import built
from testctl.plan import load_plan, topology_names
from testctl.plan.registry import Parameters

MOST = 300
"""Words offered at once."""
DEPTH = 3
"""Directories below the one that the word names."""
LONGEST_S = 1.0
"""The time after which a search of large directories ends, with its results up to then."""
CURVES = sorted(path.stem for path in (Path(__file__).parents[1] / "curves").glob("[a-z]*.py"))
"""The names of the curves, without the time that their import takes."""

CURVES_GROUP = "testctl.curves"
"""Entry points of curves of other distributions."""

Offer = Callable[..., list[str]]


def all_curves() -> list[str]:
    """The names of the curves, also of other distributions' curves, which are not imported."""
    from importlib.metadata import entry_points

    return sorted({*CURVES, *(entry.name for entry in entry_points(group=CURVES_GROUP))})


def _safe(offer: Callable[..., Iterable[str]]) -> Offer:
    """Only words that begin as the incomplete one, and none at all after an error: the shell shows no traceback."""

    @functools.wraps(offer)
    def safe(ctx: typer.Context, incomplete: str) -> list[str]:
        offered: list[str] = []
        with suppress(Exception):
            for word in offer(ctx, incomplete):
                if word.startswith(incomplete):
                    offered.append(word)
                if len(offered) == MOST:
                    break
        return sorted(offered)

    return safe


def _below(incomplete: str, is_leaf: Callable[[Path], bool]) -> Iterator[str]:
    """Paths of leaves, whole and not by directories, that begin so."""
    parent, _, start = incomplete.rpartition("/")
    prefix = f"{parent}/" if "/" in incomplete else ""
    leaves = _walk(Path(prefix or "."), prefix, start, is_leaf, DEPTH)
    until = time.monotonic() + LONGEST_S
    yield from (leaf for leaf in itertools.takewhile(lambda _: time.monotonic() < until, leaves) if leaf)


def _walk(directory: Path, prefix: str, start: str, is_leaf: Callable[[Path], bool], depth: int) -> Iterator[str]:
    """The leaves, and "" for all else that is looked at."""
    with suppress(OSError):
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
                continue
            path, name = Path(entry.path), f"{prefix}{entry.name}"
            if is_leaf(path):
                yield name
                continue
            yield ""
            if depth and entry.is_dir(follow_symlinks=False):
                yield from _walk(path, f"{name}/", "", is_leaf, depth - 1)


@_safe
def plans(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Files that have the keys of a plan."""
    yield from _below(incomplete, lambda path: path.suffix in (".yaml", ".yml") and _is_plan(path))


def _is_plan(path: Path) -> bool:
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return any(line.startswith("topology:") for line in file.read(256 * 1024).splitlines())
    return False


def _is_run(path: Path) -> bool:
    return (path / "points").is_dir()


@_safe
def runs(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    yield from _below(incomplete, _is_run)


@_safe
def points(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    yield from (path.name for path in (_run(ctx) / "points").iterdir() if not path.name.startswith("."))


@_safe
def flows(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    from testctl.results.reader import read_json

    prefixes = [word for word in (ctx.params.get("point"), *_line()) if word and "/" not in word]
    point = next(path for prefix in prefixes for path in (_run(ctx) / "points").glob(f"{glob.escape(prefix)}*"))
    yield from (str(flow["name"]) for flow in read_json(point / "point.json")["flows"])


@_safe
def curves(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    yield from all_curves()


@_safe
def metrics(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    from testctl.metrics import metric_names

    yield from metric_names()


@_safe
def rules(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    from testctl.rules import rules as known

    yield from known()


@_safe
def parameters(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Kinds of entities and parameters."""
    known = Parameters(registry)
    yield from dict.fromkeys(word for kind in known.specs for word in (kind, *known.words(kind)))


@_safe
def topologies(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    yield from topology_names()


@_safe
def kernels(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """The built ones."""
    yield from built.names()


@_safe
def testbeds(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Those that have a name, and the racks of inventory/."""
    from testctl.core.testbed_kind import RACK
    from testctl.testbeds.choose import TESTBEDS

    yield from (name for name in TESTBEDS.names() if name != RACK.name)
    yield from (str(path) for path in Path("inventory").glob("*") if not path.name.startswith("."))


@_safe
def settings(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """ENTITY.PARAM= of the tuples of the plan that the command names."""
    yield from (f"{key}=" for key in _keys(ctx))


@_safe
def tuples(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """ENTITY.PARAM of the tuples of the plan that the command names."""
    yield from _keys(ctx)


def _keys(ctx: typer.Context) -> list[str]:
    plan = _named(ctx, "file", Path.is_file)
    return [assignment.key for assignment in load_plan(plan).assignments]


def _run(ctx: typer.Context) -> Path:
    return _named(ctx, "run", _is_run)


def _named(ctx: typer.Context, argument: str, fits: Callable[[Path], bool]) -> Path:
    """The path that an argument has, else the first word of the line that fits.

    An option without its value, which is just being completed, leaves the arguments unread.  Raises StopIteration.
    """
    given = ctx.params.get(argument)
    return Path(given) if given else next(path for path in map(Path, _line()) if fits(path))


def _line() -> list[str]:
    """The words after the program's name, as bash, and as zsh and fish, hand them over."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return shlex.split(line)[1:]
