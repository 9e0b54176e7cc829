# SPDX-License-Identifier: Apache-2.0
"""The language of formulas: what it reads, prints, computes and refuses."""

from __future__ import annotations

import pickle
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testctl.plan.formula import (
    DIMENSIONS,
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_OPERANDS,
    NUMBER,
    Dimension,
    Formula,
    FormulaError,
    is_meant,
    unit_name,
)
from testctl_agent.spec.units import Bytes, Duration, Rate

SIZE, TIME, RATE = DIMENSIONS[Bytes], DIMENSIONS[Duration], DIMENSIONS[Rate]
UNITS: dict[str, Dimension] = {"bdp": SIZE, "mtu": SIZE, "rtt": TIME, "rate": RATE, "a.delay": TIME, "hosts.n": NUMBER}
VALUES = {
    "bdp": Fraction(80_000),
    "mtu": Fraction(12_000),
    "rtt": Fraction(1, 100),
    "rate": Fraction(8_000_000),
    "a.delay": Fraction(1, 200),
    "hosts.n": Fraction(10),
}
WORDS = [
    *UNITS,
    "s-b.rate",
    "min:x.rate",
    "s",
    "1",
    "0.5",
    "10ms",
    "5 s",
    "64KiB",
    "10Mbit/s",
    "2 ",
    *"+-*/() ",
    "e",
    ".",
]


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("bdp", "bdp", 80_000),
        ("0.5 bdp", "0.5 bdp", 40_000),
        ("0.50bdp", "0.5 bdp", 40_000),
        ("2 * bdp", "2 bdp", 160_000),
        ("bdp * 2", "bdp * 2", 160_000),
        ("rate / 4", "rate / 4", 2_000_000),
        ("rate/4", "rate / 4", 2_000_000),
        ("bdp-mtu", "bdp - mtu", 68_000),
        ("bdp - 2 mtu - mtu", "bdp - 2 mtu - mtu", 44_000),
        ("bdp - (2 mtu - mtu)", "bdp - (2 mtu - mtu)", 68_000),
        ("(bdp + mtu) / 2", "(bdp + mtu) / 2", 46_000),
        ("bdp + mtu / 2", "bdp + mtu / 2", 86_000),
        ("bdp / 2 mtu", "bdp / 2 mtu", Fraction(80, 24)),
        ("bdp / 2 * mtu", "bdp / 2 * mtu", 480_000_000),
        ("((rtt))", "rtt", Fraction(1, 100)),
        ("rate * (rtt + 10ms)", "rate * (rtt + 10ms)", 160_000),
        ("1.5 mbit", "1.5mbit", 1_500_000),
        ("10Mbit/s / 4", "10Mbit/s / 4", 2_500_000),
        ("2 min / 4", "2min / 4", 30),
        ("64 KiB", "64KiB", 64 * 1024 * 8),
        ("2 a.delay", "2 a.delay", Fraction(1, 100)),
        ("hosts.n mtu".replace(" ", " * "), "hosts.n * mtu", 120_000),
    ],
)
def test_reads_and_computes(text: str, canonical: str, value: Fraction | int) -> None:
    formula = Formula(text)
    assert str(formula) == canonical
    assert formula.value(VALUES.__getitem__) == value
    assert pickle.loads(pickle.dumps(formula)).tree == formula.tree


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "want a number or a name; got the end of the formula"),
        ("0.5 bdp +", "want a number or a name; got the end of the formula"),
        ("* 2", "want a number or a name; got *"),
        ("-2 bdp", "want a number or a name; got -"),
        ("bdp bdp", "want + - * / before bdp"),
        ("2 3", "want + - * / before 3"),
        ("2 (bdp)", "want + - * / before ("),
        ("(bdp", "want a closing parenthesis for each opening one"),
        ("bdp)", "want + - * / before )"),
        ("bdp ** 2", "want a number or a name; got *"),
        ("bdp; 2", "want numbers, names, + - * / and parentheses; got ; 2"),
        ("BDP", "want numbers, names, + - * / and parentheses; got BDP"),
        ("__import__", "want numbers, names, + - * / and parentheses; got __import__"),
        ("(" * 60 + "1", f"want at most {MAX_DEPTH} parentheses in each other"),
        ("1+" * 40 + "1", f"want at most {MAX_OPERANDS} numbers and names in a formula; got 41"),
        ("1" + " " * MAX_LENGTH, f"want a formula of at most {MAX_LENGTH} characters; got {MAX_LENGTH + 1}"),
    ],
)
def test_refuses(text: str, want: str) -> None:
    with pytest.raises(FormulaError) as error:
        Formula(text)
    assert str(error.value) == want


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("0.5 bdp", "a size in bytes"),
        ("rate * rtt", "a size in bytes"),
        ("bdp / rtt", "a rate"),
        ("bdp / rate + a.delay", "a time"),
        ("bdp / mtu * hosts.n + 1", "a number"),
        ("rate * rate", "bits^2 * seconds^-2"),
    ],
)
def test_the_unit_of_a_formula(text: str, unit: str) -> None:
    assert unit_name(Formula(text).dimension(UNITS.__getitem__)) == unit


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("bdp + 3ms", "want the same unit on both sides of +; got a size in bytes (bdp) and a time (3ms)"),
        ("2 - rtt", "want the same unit on both sides of -; got a number (2) and a time (rtt)"),
    ],
)
def test_units_that_do_not_fit(text: str, want: str) -> None:
    with pytest.raises(FormulaError) as error:
        Formula(text).dimension(UNITS.__getitem__)
    assert str(error.value) == want


def test_no_division_by_zero() -> None:
    with pytest.raises(FormulaError) as error:
        Formula("bdp / (rtt - 10ms)").value(VALUES.__getitem__)
    assert str(error.value) == "want a divisor other than 0; got rtt - 10ms = 0"


@pytest.mark.parametrize(
    "text", ["bdp", "2bdp", "0.5 * bqp", "rate/4", "a.b/2", "2 * 5ms", "2*5ms", "bdp ?", "rat / 4"]
)
def test_meant_as_a_formula(text: str) -> None:
    assert is_meant(text)


@pytest.mark.parametrize(
    "text",
    [
        "10ms",
        "10 parsecs",
        "2 BDP",
        "cubic",
        "./a.trace",
        "traces/rate.trace",
        "a/b.trace",
        "rate/x?",
        "1ms-200ms",
        "1/2",
    ],
)
def test_meant_as_something_else(text: str) -> None:
    assert not is_meant(text)


TEXTS = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=12).map("".join))


@given(TEXTS)
@example("2 * s-b.rate")
@example("2 * s")
@example("10mbit / s.rate")
@example("0.00000000000000000001 bdp")
def test_whatever_is_written_it_is_read_or_refused(text: str) -> None:
    is_meant(text)
    try:
        formula = Formula(text)
    except FormulaError:
        return
    again = Formula(str(formula))
    assert (again.tree, str(again)) == (formula.tree, str(formula))
    with suppress(FormulaError):
        formula.dimension(lambda name: UNITS.get(name, NUMBER))
    with suppress(FormulaError):
        formula.value(lambda name: VALUES.get(name, Fraction()))


NUMBERS = st.decimals(0, 10**6, places=3).map(str)
TREES = st.recursive(
    st.one_of(NUMBERS, st.sampled_from([*UNITS, "5ms", "3 mbit", "2 bdp"])),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda of: f"({of[0]} {of[1]} {of[2]})"),
    max_leaves=12,
)


@given(TREES)
def test_what_is_printed_is_read_as_the_same(text: str) -> None:
    formula = Formula(text)
    assert Formula(str(formula)).tree == formula.tree
    assert len(str(formula)) <= len(text)
