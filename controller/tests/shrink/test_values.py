# SPDX-License-Identifier: Apache-2.0
"""Other values of a tuple, and values as plans write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.plan.diagnostics import Place
from testctl.plan.located import node_of, plain
from testctl.plan.numbers import value_shown
from testctl.plan.yaml_reader import parse
from testctl.shrink.values import Numbers, Words, choices
from testctl.shrink.write import file_of
from testctl.shrink.yaml import block
from testctl_agent.params.flow.workload import Sizes
from testctl_agent.params.types import Changing, OrNone
from testctl_agent.spec import trace
from testctl_agent.spec.types import Amount, Choice, Int, Switch, Text
from testctl_agent.spec.units import Bytes, Duration, Rate

SIZE = Amount(Bytes, least=1, most=2**31 - 1, none="none")


@pytest.mark.parametrize(
    ("kind", "text", "swept", "others"),
    [
        (Switch(), "on", ("on",), ("off",)),
        (Choice(("data", "ack")), "ack", ("ack",), ("data",)),
        (Choice((0, 1, 2)), "1", ("2", "1"), ("2", "0")),
        (Text("[a-z_]+", "a name"), "bug", ("bug", "fixed"), ("fixed",)),
        (Text("[a-z_]+", "a name"), "bug", ("bug",), ()),
        (SIZE, "none", ("none", "3kB"), ("3kB",)),
    ],
)
def test_words(kind: Any, text: str, swept: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert choices(kind, text, swept, None, passes=True) == Words(others)


RATE = Changing(Rate, file=trace.value_of, value=trace.is_trace)


@pytest.mark.parametrize(("kind", "data"), [(RATE, b"1\n1\n5\n"), (Sizes(), b"10kB 0.25\n20kB 0.5  # half\n1MB 1\n")])
def test_the_value_of_a_file(kind: Any, data: bytes) -> None:
    """Its path stands in the plan; one that the run did not keep is not tried; written again it has the same value."""
    value = kind.file(data)
    assert kind.file(file_of(value).encode()) == value
    swept = ("./own", "2", "./other")
    assert choices(Sizes(), "./own", swept, None, passes=True, files={"./own": "1kB:0.5 2kB:1"}) == Words(("2",))


@pytest.mark.parametrize(
    ("kind", "text", "value", "step"),
    [
        (SIZE, "3kB", 3000, 1000),
        (SIZE, "30kB", 30000, 1000),
        (SIZE, "1.5MB", 1500000, 100000),
        (Amount(Duration), "10us", 10000, 1000),
        (Amount(Rate), "1gbit", 10**9, 10**8),
        (Int(576, 65535), "1500", 1500, 100),
        (OrNone(Int(1, 100)), "9", 9, 1),
    ],
)
def test_numbers_move_in_steps_of_their_unit(kind: Any, text: str, value: int, step: int) -> None:
    found = choices(kind, text, (text,), None, passes=False)
    assert isinstance(found, Numbers)
    assert (found.axis.value, found.axis.step) == (value, step)
    assert kind.parse(found.show(value)) == value


def test_a_default_that_passes_bounds_the_range() -> None:
    found = choices(Amount(Duration), "10us", ("10us", "50us"), 0, passes=True)
    assert isinstance(found, Numbers)
    assert (found.axis.hints, found.axis.passes) == ((0, 50000), (0,))


@given(st.integers(0, 2**40))
def test_a_quantity_is_read_back(value: int) -> None:
    for kind in (Amount(Duration), Amount(Bytes), Amount(Rate)):
        assert kind.parse(value_shown(kind, value)) == value


WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("Cc", "Cs")), max_size=12)
DATA = st.recursive(
    st.booleans() | st.integers(-(10**18), 10**18) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet="abc._: ", min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(DATA)
def test_data_written_as_yaml_is_read_back(data: Any) -> None:
    text = f"a: {block(data)}\n"
    assert plain(parse(text, "test")) == plain(node_of({"a": data}, Place("test"))) == {"a": data}


def test_a_version_is_no_number() -> None:
    assert block(["6.12", "3kB", "0", "a: b"], values=True) == '["6.12", 3kB, 0, "a: b"]'
