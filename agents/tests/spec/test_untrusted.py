# SPDX-License-Identifier: Apache-2.0
"""JSON from elsewhere is refused with a ValueError or taken whole; its shape and its words are checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.untrusted import LARGEST, MAX_DEPTH, Named, loads, misfit, words

SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
ANY = st.recursive(SIMPLE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 900 + "]" * 900, "NaN", '{"a": Infinity}', "[-Infinity]", '"\\ud800"',
     '{"\\udfff": 1}', '{"a": "\\uD83Dx"}', "", "{", "1" * 5000],
)  # fmt: skip
def test_what_is_no_json(text: str) -> None:
    for given_as in (text, text.encode()):
        with pytest.raises(ValueError, match=r"."):
            loads(given_as)


def test_as_deep_as_it_may_be() -> None:
    assert loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="nested more than 100 levels deep"):
        loads("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))


@given(ANY)
def test_whatever_it_is(value: Any) -> None:
    """Every document is as it was, but for its control characters, and can be written in UTF-8."""
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        try:
            found = loads(text)
        except ValueError:
            with pytest.raises(UnicodeEncodeError):
                json.dumps(value, ensure_ascii=False).encode()
            continue
        again = json.dumps(found, ensure_ascii=False)
        assert json.loads(again) == found
        assert all(char.isprintable() or not char.isascii() or char in "\n\t" for char in _texts(found))


def _texts(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(map(_texts, [*value, *value.values()]))
    return "".join(map(_texts, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


@given(st.text())
def test_words_can_be_shown(text: str) -> None:
    shown = words(text)
    assert not {char for char in shown if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n", "\t"}
    assert words(shown) == shown
    if text.isprintable():
        assert shown == text


def test_a_title_of_a_window() -> None:
    assert words("x\x1b]0;mine\x07\x9b2J\u202ey\r\nz") == "x�]0;mine��2J�y\nz"
    assert loads('{"a\\u001b": ["\\u001b[2J", "\\u009b", "\\u202e", "\\b", "\u009b", "\x7f"]}') == {
        "a�": ["�[2J", "�", "�", "�", "�", "�"]
    }


def test_an_error_says_nothing_to_a_terminal() -> None:
    assert str(TestbedError("gcc: \x1b[31merror\x1b[0m\nline two")) == "gcc: �[31merror�[0m\nline two"


SHAPE = {"a": int, "b?": [Named(float)], "c?": ([{"d": str}], None), "e?": [str, object]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": 1}, ""),
        ({"a": 1, "b": [{"x": 1.5}, {}], "c": None, "other": object()}, ""),
        ([], "want an object; got list"),
        ({}, "want a; it is not there"),
        ({"a": True}, "want an integer of 64 bits at a; got True"),
        ({"a": LARGEST}, f"want an integer of 64 bits at a; got {LARGEST}"),
        ({"a": 1.0}, "want an integer of 64 bits at a; got 1.0"),
        ({"a": 1, "b": [{}, {"x": float("inf")}]}, "want a finite number at b[1].x; got inf"),
        ({"a": 1, "b": [{"x": 10**400}]}, f"want a finite number at b[0].x; got {'1' + '0' * 79}"),
        ({"a": 1, "c": [{"d": 5}]}, "want a text at c[0].d; got 5"),
        ({"a": 1, "c": 7}, "want a list at c; got 7"),
        ({"a": 1, "e": ["x", {}]}, ""),
        ({"a": 1, "e": [1, {}]}, "want a text at e[0]; got 1"),
        ({"a": 1, "e": ["x"]}, "want a list of 2 at e; got 1"),
    ],
)
def test_what_does_not_fit(value: Any, said: str) -> None:
    assert misfit(value, SHAPE) == said
