# SPDX-License-Identifier: Apache-2.0
"""Formulas as values of parameters: "0.5 bdp", "rate / 4", "2 switch.delay + 1ms".

    sum     = product {("+" | "-") product}
    product = factor {("*" | "/") factor}
    factor  = NUMBER [UNIT] [name] | name | "(" sum ")"
    name    = bdp | rtt | rate | mtu | ENTITY.PARAM

A number before a name is multiplied by it first: rate / 2 mtu is rate / (2 * mtu).  Nothing is executed but these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from testctl_agent.spec.units import Bytes, Duration, Quantity, Rate

from testctl.plan.diagnostics import show

PATH_QUANTITIES = ("bdp", "rtt", "rate", "mtu")
"""Of the empty path of flows: bandwidth-delay product, base round-trip time, rate of the bottleneck; and the MTU."""
MAX_OPERANDS = 32
MAX_DEPTH = 50
MAX_LENGTH = 1000

Dimension = tuple[int, int]
"""Exponents of bits and of seconds."""
NUMBER: Dimension = (0, 0)
DIMENSIONS: dict[type[Quantity], Dimension] = {Rate: (1, -1), Bytes: (1, 0), Duration: (0, 1)}
SIZES: dict[type[Quantity], Fraction] = {Rate: Fraction(1), Bytes: Fraction(8), Duration: Fraction(1, 10**9)}
"""The base unit of each quantity, in bits and seconds."""
_WORDS = {NUMBER: "a number", (1, -1): "a rate", (1, 0): "a size in bytes", (0, 1): "a time"}

_UNITS: dict[str, tuple[type[Quantity], int]] = {
    unit: (quantity, size) for quantity in DIMENSIONS for unit, size in quantity.units.items() if unit
}
_NUMBER = r"(?P<number>[0-9]{1,20}(?:\.[0-9]{1,20})?)"
_UNIT = rf"(?:\s*(?P<unit>{'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w.:]))?"
_NAME = r"(?P<name>[a-z]\w*(?:[:-][a-z]\w*)?(?:\.[a-z]\w*)+|[a-z]\w*)"
_TOKEN = re.compile(rf"\s*(?:{_NUMBER}{_UNIT}|{_NAME}|(?P<sign>[-+*/()]))\s*", re.ASCII)


class FormulaError(ValueError):
    """A fault of a formula, as "want …; got …"."""


@dataclass(frozen=True)
class Constant:
    """A number; without a unit, unit is ""."""

    value: Fraction
    unit: str = ""


@dataclass(frozen=True)
class Name:
    """bdp, rtt, rate, mtu or ENTITY.PARAM."""

    text: str


@dataclass(frozen=True)
class Operation:
    """left sign right; the sign is one of + - * /"""

    sign: str
    left: Tree
    right: Tree


Tree = Constant | Name | Operation


class Formula(str):
    """A formula in its canonical text, from which it can be read again.

    Raises FormulaError for text that is none.
    """

    tree: Tree

    def __new__(cls, text: str) -> Formula:
        tree = _Parser(text).whole()
        self = super().__new__(cls, _text(tree))
        self.tree = tree
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each once."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def dimension(self, of: Callable[[str], Dimension]) -> Dimension:
        """The dimension of its value.  of: gives a name's.  Raises FormulaError where units do not fit."""
        return _dimension(self.tree, of)

    def value(self, of: Callable[[str], Fraction]) -> Fraction:
        """Its value, in bits and seconds.  of: gives a name's.  Raises FormulaError for a division by zero."""
        return _value(self.tree, of)


def unit_name(dimension: Dimension) -> str:
    bits, seconds = dimension
    return _WORDS.get(dimension, f"bits^{bits} * seconds^{seconds}")


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Numbers, names and signs.  Raises FormulaError at anything else."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise FormulaError(f"want numbers, names, + - * / and parentheses; got {show(text[at:].strip())}")
        yield match
        at = match.end()


def is_meant(text: str) -> bool:
    """Whether text is meant as a formula, which may have mistakes: not a quantity with a wrong unit, nor a file's path.

    It has a quantity of the path, a name with a dot, or a sign with a space before or after it.
    """
    try:
        read = [*tokens(text)]
    except FormulaError:
        return "/" not in text and any(re.search(rf"\b{name}\b", text) for name in PATH_QUANTITIES)
    names = [token["name"] for token in read if token["name"]]
    known = [name for name in names if name in PATH_QUANTITIES or "." in name]
    signs = {token["sign"] for token in read} - {None, "-"}
    return (
        (bool(known) and len(known) == len(names))
        or (" " in text and bool(known or signs))
        or (not names and bool(signs - {"/"}))
    )


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise FormulaError(f"want a formula of at most {MAX_LENGTH} characters; got {len(text)}")
        self._tokens = [*tokens(text)]
        operands = sum(1 for token in self._tokens if token["sign"] is None)
        if operands > MAX_OPERANDS:
            raise FormulaError(f"want at most {MAX_OPERANDS} numbers and names in a formula; got {operands}")
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._sum()
        if self._at < len(self._tokens):
            raise FormulaError(f"want + - * / before {show(self._tokens[self._at][0].strip())}")
        return tree

    def _sign(self, signs: str) -> str:
        """The next token if it is one of these signs, which is then read; else ""."""
        sign = self._tokens[self._at]["sign"] if self._at < len(self._tokens) else None
        if sign is None or sign not in signs:
            return ""
        self._at += 1
        return sign

    def _sum(self) -> Tree:
        tree = self._product()
        while sign := self._sign("+-"):
            tree = Operation(sign, tree, self._product())
        return tree

    def _product(self) -> Tree:
        tree = self._factor()
        while sign := self._sign("*/"):
            tree = Operation(sign, tree, self._factor())
        return tree

    def _factor(self) -> Tree:
        if self._sign("("):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise FormulaError(f"want at most {MAX_DEPTH} parentheses in each other")
            tree = self._sum()
            if not self._sign(")"):
                raise FormulaError("want a closing parenthesis for each opening one")
            self._depth -= 1
            return tree
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token["sign"]:
            raise FormulaError(f"want a number or a name; got {token['sign'] if token else 'the end of the formula'}")
        self._at += 1
        if token["name"]:
            return Name(token["name"])
        constant = Constant(Fraction(token["number"]), token["unit"] or "")
        following = self._tokens[self._at]["name"] if self._at < len(self._tokens) else None
        if following is None:
            return constant
        self._at += 1
        return Operation("*", constant, Name(following))


def _text(tree: Tree) -> str:
    if isinstance(tree, Name):
        return tree.text
    if isinstance(tree, Constant):
        places = next(n for n in range(40) if tree.value.denominator and (tree.value * 10**n).denominator == 1)
        digits = f"{int(tree.value * 10**places):0{places + 1}d}"
        return f"{digits[:-places]}.{digits[-places:]}{tree.unit}" if places else f"{digits}{tree.unit}"
    left, right = _text(tree.left), _text(tree.right)
    if _tight(tree):
        return f"{left} {right}"
    if isinstance(tree.left, Operation) and tree.sign in "*/" and tree.left.sign in "+-":
        left = f"({left})"
    if isinstance(tree.right, Operation) and not _tight(tree.right) and (tree.sign in "*/" or tree.right.sign in "+-"):
        right = f"({right})"
    return f"{left} {tree.sign} {right}"


def _tight(tree: Operation) -> bool:
    """Whether it is a number times a name, as in 2 bdp, which needs no sign nor parentheses."""
    factors = isinstance(tree.left, Constant) and not tree.left.unit and isinstance(tree.right, Name)
    return factors and tree.sign == "*" and re.split("[-:.]", _text(tree.right))[0] not in _UNITS


def _names(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Name):
        yield tree.text
    elif isinstance(tree, Operation):
        yield from _names(tree.left)
        yield from _names(tree.right)


def _dimension(tree: Tree, of: Callable[[str], Dimension]) -> Dimension:
    if isinstance(tree, Constant):
        return DIMENSIONS[_UNITS[tree.unit][0]] if tree.unit else NUMBER
    if isinstance(tree, Name):
        return of(tree.text)
    left, right = _dimension(tree.left, of), _dimension(tree.right, of)
    if tree.sign in "+-":
        if left != right:
            sides = [f"{unit_name(unit)} ({show(_text(of))})" for of, unit in ((tree.left, left), (tree.right, right))]
            raise FormulaError(f"want the same unit on both sides of {tree.sign}; got {' and '.join(sides)}")
        return left
    times = 1 if tree.sign == "*" else -1
    return left[0] + times * right[0], left[1] + times * right[1]


def _value(tree: Tree, of: Callable[[str], Fraction]) -> Fraction:
    if isinstance(tree, Constant):
        quantity, size = _UNITS[tree.unit] if tree.unit else (None, 1)
        return tree.value * size * (SIZES[quantity] if quantity else 1)
    if isinstance(tree, Name):
        return of(tree.text)
    left, right = _value(tree.left, of), _value(tree.right, of)
    if tree.sign == "+":
        return left + right
    if tree.sign == "-":
        return left - right
    if tree.sign == "*":
        return left * right
    if not right:
        raise FormulaError(f"want a divisor other than 0; got {show(_text(tree.right))} = 0")
    return left / right
