# SPDX-License-Identifier: Apache-2.0
"""What is not a small plain document is refused, with its place."""

from __future__ import annotations

import pytest
from testctl.plan.yaml_reader import MAX_BYTES, Mapping, Scalar, Sequence, parse
from testctl_agent.spec.errors import PlanError

BAD: dict[bytes | str, str] = {
    b"": "x.yaml: want a document; got an empty file",
    b"# nothing\n": "x.yaml: want a document; got an empty file",
    b"a: [1, 2": "x.yaml:1:9: not YAML: expected ',' or ']', but got '<stream end>' while parsing a flow sequence",
    b"a: b: c": "x.yaml:1:5: not YAML: mapping values are not allowed here",
    b"a:\n\t- 1": "x.yaml:2:1: not YAML: got a tab; want spaces to indent",
    b"a: 1\na: 2": "x.yaml:2:1: a: given twice, first at x.yaml:1:1",
    b"[a]: 1": "x.yaml:1:1: want a word as key; got a list",
    b"a: \xff": "x.yaml:1:4: want UTF-8; got byte 0xff",
    b"\xef\xbb\xbfa: 1\nb: \xff": "x.yaml:2:4: want UTF-8; got byte 0xff",
    b"a: 1\nb: \x00": "x.yaml:2:4: want text; got a NUL character",
    "a: \x01": "x.yaml:1:4: not YAML: a character that can't be printed",
    "a: &x 1\nb: *x": "x.yaml:1:4: anchors and aliases (& and *) are not taken; write the value out",
    "a: !!python/object:os.system 1": "x.yaml:1:4: tags (!) are not taken; "
    "got tag:yaml.org,2002:python/object:os.system",
    "a: 1\n---\nb: 1": "x.yaml:2:1: want one document; got another",
    "[" * 50: "x.yaml:1:17: want at most 16 levels of nesting",
    "x" * (MAX_BYTES + 1): f"x.yaml: want at most {MAX_BYTES} bytes; got more",
}


@pytest.mark.parametrize(("data", "want"), BAD.items(), ids=lambda v: repr(v)[:20])
def test_refused(data: bytes | str, want: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(data, "x.yaml")
    assert str(caught.value) == want


def test_a_laughing_file_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.raises(PlanError, match=r"x\.yaml:1:4: anchors"):
        parse(bomb, "x.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("'7'", "7"), ("010", "010"), ("1:30", "1:30"), ("6.10", "6.10"), ("on", "on"), ("no", "no"),
     ("true", True), ("'true'", "true"), ("1_000", "1_000"), ("2020-01-01", "2020-01-01"), ("9" * 30, "9" * 30)],
)  # fmt: skip
def test_only_plain_numbers_and_booleans_are_more_than_text(text: str, value: object) -> None:
    node = parse(text, "x.yaml")
    assert isinstance(node, Scalar)
    assert node.value == value
    assert type(node.value) is type(value)


def test_places_count_from_one() -> None:
    node = parse("a: 1\nb:\n  - x\n  - [y]\n", "x.yaml")
    assert isinstance(node, Mapping)
    items = node.get("b")
    assert isinstance(items, Sequence)
    assert [str(item.place) for item in items.items] == ["x.yaml:3:5", "x.yaml:4:5"]
