# SPDX-License-Identifier: Apache-2.0
"""Limits of a peer's requests, and checks of the names in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from testctl_agent.engine.refusals import BadRequest, LimitReached
from testctl_agent.spec.types import Value

MESSAGE_BYTES = 8 << 20
WAIT_NS = 24 * 3600 * 10**9
"""The longest that one Wait takes."""
_WORD_CHARS = 100
_OPTIONS = 200
_TEXT_CHARS = 100_000
"""A word of a program's command has at most 128 KiB on Linux (MAX_ARG_STRLEN)."""
_ADDRESSES = ("address", "bind", "peer")
_SETTING_CHARS = 1 << 20
_SHOWN_CHARS = 60


@dataclass(frozen=True)
class Limits:
    """Limits of a peer's resource usage; None is unlimited, as for an agent without a configuration file.

    message_bytes  of one request
    tasks          that run at a time
    work_bytes     in the working directory when a task is started
    long_calls     of Wait and Fetch at a time, so that others find a thread
    """

    message_bytes: int = MESSAGE_BYTES
    tasks: int | None = None
    work_bytes: int | None = None
    long_calls: int | None = None


def shown(text: str) -> str:
    """A peer's text, short enough for an error."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def task_name(who: str, name: str) -> str:
    """The name of a task, which becomes a directory's: a word.  Raises BadRequest."""
    if len(name) > _WORD_CHARS or not name.isascii() or not name.replace("-", "_").isidentifier():
        raise BadRequest(f"{who}: a task's name is a word of at most {_WORD_CHARS} characters; got {shown(name)}")
    return name


def options(who: str, given: Mapping[str, Value]) -> Mapping[str, Value]:
    """The options of a task.  Raises BadRequest for what no program's command could hold."""
    if len(given) > _OPTIONS:
        raise BadRequest(f"{who}: want at most {_OPTIONS} options; got {len(given)}")
    for name, value in given.items():
        if len(name) > _WORD_CHARS or not name.isidentifier():
            raise BadRequest(f"{who}: an option's name is a word; got {shown(name)}")
        text(f"{who}, option {name}", value, _TEXT_CHARS)
        if (name in _ADDRESSES or name.endswith("_server")) and value:
            address(f"{who}, option {name}", value)
    return given


def address(who: str, value: Value) -> None:
    """That a value is an IP address: a name would have to be looked up, somewhere.  Raises BadRequest."""
    try:
        ip_address(str(value))
    except ValueError as error:
        raise BadRequest(f"{who}: want an IP address; got {shown(str(value))}") from error


def setting(who: str, entity: str, parameter: str, value: Value) -> None:
    """The parts of a setting.  Raises BadRequest."""
    for part in (entity, parameter):
        text(who, part, _WORD_CHARS)
    text(f"{who}, {parameter}", value, _SETTING_CHARS)


def text(who: str, value: Value, most: int) -> None:
    """That a text, if it is one, is not too long and has no NUL.  Raises BadRequest."""
    if not isinstance(value, str):
        return
    if len(value) > most:
        raise BadRequest(f"{who}: want at most {most} characters; got {len(value)}")
    if "\0" in value:
        raise BadRequest(f"{who}: want text without NUL; got {shown(value)}")


def space_below(who: str, folder: Path, most: int) -> None:
    """Check that less than `most` bytes lie below a directory.  Raises LimitReached."""
    used = sum(_bytes(Path(where) / name) for where, _, names in os.walk(folder) for name in names)
    if used >= most:
        raise LimitReached(f"{who}: {folder} is full: want less than {most} bytes; got {used}")


def _bytes(path: Path) -> int:
    """What a file takes on disk; 0 when it went away meanwhile."""
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0
