# SPDX-License-Identifier: Apache-2.0
"""Checks journalled changes: whether the machine has rebooted, or somebody else has changed the value since."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from testctl_agent.engine.journal import Entry, Journal, Unreadable
from testctl_agent.spec.types import Value, shown

Key = tuple[str, str]
"""(entity, parameter)."""
Now = Callable[[Entry], Value | None]
"""The value of an entry's parameter now; None when it can't be read."""


def key(entry: Entry) -> Key:
    return entry.entity, entry.parameter


def of_this_boot(entries: Sequence[Entry | Unreadable], boot: str, now: Now) -> list[Entry | Unreadable]:
    """Without the entries of another boot, whose changes went with it: a value that differs since is logged, and stays.

    boot  the one that runs; "": nobody asks
    """
    kept: list[Entry | Unreadable] = []
    gone: dict[Key, Entry] = {}
    for entry in entries:
        if isinstance(entry, Unreadable) or not boot or entry.boot in ("", boot):
            kept.append(entry)
        else:
            gone.setdefault(key(entry), entry)
    for entry in gone.values():
        if (value := now(entry)) != entry.value:
            is_now = "can't be read now" if value is None else f"is {shown(value)} now, which stays"
            import logging

            logging.getLogger(__name__).warning(
                "%s, %s: was %s when a boot of this machine that is over changed it; %s",
                entry.entity, entry.parameter, shown(entry.value), is_now,
            )  # fmt: skip
    return kept


def theirs(entries: Sequence[Entry | Unreadable], journal: Journal, begun: Collection[Key], now: Now) -> dict[Key, str]:
    """Values that somebody else has changed since they were set, with the error for each.

    Entries left half set or half restored are not counted; `begun`: entries that this agent is restoring.
    """
    oldest: dict[Key, Value] = {}
    newest: dict[Key, Entry] = {}
    for entry in entries:
        if isinstance(entry, Entry):
            oldest.setdefault(key(entry), entry.value)
            newest[key(entry)] = entry
    errors: dict[Key, str] = {}
    for which, entry in newest.items():
        value = now(entry) if entry.settled and which not in begun else None
        if value is None or value in (oldest[which], entry.wanted):
            continue
        was = shown(oldest[which])
        errors[which] = (
            f"was {was}, is {shown(value)}; it was set to {shown(entry.wanted)}, and somebody else has changed it "
            f"since: set it to {was}, or, to keep what it is, remove its lines from {journal.path}"
        )
    return errors
