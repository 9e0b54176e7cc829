# SPDX-License-Identifier: Apache-2.0
"""Comments, docstrings and documentation use the field's terms: metaphors and private words of the past stay out.

Each rule has the term to use instead.  Code is not checked, only its comments and, in Python, strings of three words
or more.  Read are pages, Python, C, P4, JavaScript, CSS, YAML and shell.

Vague words in identifiers and docstrings of the sources have a budget each, which only falls: use a precise noun.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

RULES = {
    r"rooms?": "package, memory, space; or: fits",
    r"houses?": "repository, project",
    r"beds?": "testbed",
    r"stations?": "host, switch, machine",
    r"nights?": "nightly run",
    r"doors?": "interceptor, entry point",
    r"told": "set, reported, distinguished",
    r"said": "printed, reported, stated",
    r"mend(s|ed|ing)?": "fix",
    r"lends?|lending|lent|borrow(s|ed|ing)?": "acquire, release, share",
    r"befall(s|en)?|befell": "happen, apply",
    r"books": "scheduler state",
    r"debts?": "scheduler state",
    r"whoever": "the process, the user",
    r"held against": "compared with",
    r"passed over": "skipped, ignored",
}
"""Regular expression of whole words → what to write instead."""

IDENTIFIERS = {"asked": 20, "bed": 15, "found": 68, "mine": 5, "one": 49, "said": 6, "told": 3, "words": 44}
"""Word -> how many names that the sources define may have it: variables, arguments, attributes, functions, classes."""
DOCSTRINGS = {
    "asked": 15, "beside": 14, "found": 16, "has not": 3, "have not": 3, "none of": 10, "of which": 3, "so many": 9,
    "that of": 10, "those of": 32, "what is": 23,
}  # fmt: skip
"""Phrase -> how often docstrings of the sources may have it."""

ALLOWED = (
    r"every night",
    r"told apart",
    r"`stations`",
    r"has room for one segment",
    r"It is told only when",  # of a P4 source, which changes with its compiled program alone
    r"a borrow costs",  # of a subtraction
    r"stations +MAC",  # a table of the P4 program
)
"""Phrases in which such a word is the right one."""

PATTERN = re.compile(rf"\b(?:{'|'.join(RULES)})\b", re.IGNORECASE)
ALLOWED_PATTERN = re.compile("|".join(ALLOWED), re.IGNORECASE)
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
HASH_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
COMMENTS = {".yaml": HASH_COMMENT, ".yml": HASH_COMMENT, ".toml": HASH_COMMENT, ".sh": HASH_COMMENT} | dict.fromkeys(
    (".c", ".h", ".js", ".css", ".p4"), C_COMMENT
)
"""Suffix of a file → what its comments look like."""
SPOKEN = re.compile(r"\S+\s+\S+\s+\S")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.splitlines() if "/fixtures/" not in name and "/golden/" not in name]
    return [name for name in names if Path(name).suffix in (".py", ".md", *COMMENTS) and "_pb2" not in name]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line number, text) of what a reader reads: all of a page; comments and longer strings of Python."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    if path.suffix in COMMENTS:
        for comment in COMMENTS[path.suffix].finditer(text):
            yield from enumerate(comment.group().splitlines(), text.count("\n", 0, comment.start()) + 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SPOKEN.search(node.value):
            yield from enumerate(node.value.splitlines(), node.lineno)


def names_and_docstrings(text: str) -> tuple[Counter[str], Counter[str]]:
    """(words of the names that a module defines, phrases of its docstrings), each with its count."""
    names: list[str] = []
    docstrings: list[str] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names += re.findall(r"[A-Z]?[a-z]+", name)
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                docstrings += re.findall(rf"\b(?:{'|'.join(DOCSTRINGS)})\b", " ".join(docstring.lower().split()))
    return Counter(name.lower() for name in names), Counter(docstrings)


def test_vague_words_only_become_fewer() -> None:
    names, phrases = Counter[str](), Counter[str]()
    for file in tracked():
        if file.startswith(("controller/src/", "agents/src/")) and file.endswith(".py"):
            in_names, in_docstrings = names_and_docstrings((ROOT / file).read_text(encoding="utf-8"))
            names += in_names
            phrases += in_docstrings
    over = [
        f"{kind} {word!r}: want at most {most}; got {counts[word]}"
        for kind, budget, counts in (("identifiers", IDENTIFIERS, names), ("docstrings", DOCSTRINGS, phrases))
        for word, most in budget.items()
        if counts[word] > most
    ]
    assert not over, "\n".join(over)


def test_names_and_docstrings() -> None:
    text = 'class Bed:\n    """What is\n    asked."""\n    def found(self, one):\n        self.told_apart = "asked"\n'
    names, phrases = names_and_docstrings(text)
    assert names == Counter(("bed", "found", "self", "one", "told", "apart"))
    assert phrases == Counter(("what is", "asked"))


def found(text: str) -> list[str]:
    """The words of RULES in a text."""
    return [match.group() for match in PATTERN.finditer(ALLOWED_PATTERN.sub("", text))]


def has(path: Path) -> bool:
    """Whether some word of RULES is anywhere in a file: most have none, and taking a file apart takes longest."""
    return PATTERN.search(path.read_text(encoding="utf-8")) is not None


def test_prose_has_the_fields_terms() -> None:
    wrong = [
        f"{name}:{number}: {word!r} in {line.strip()[:100]!r}; use: {advice(word)}"
        for name in tracked()
        if name != "tests/test_words.py" and has(ROOT / name)
        for number, line in prose(ROOT / name)
        for word in found(line)
    ]
    assert not wrong, "\n".join(wrong)


def advice(word: str) -> str:
    return next(better for rule, better in RULES.items() if re.fullmatch(rule, word, re.IGNORECASE))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The door of an agent: who may call what", ["door"]),
        ("no room calls back into the one before it", ["room"]),
        ("It runs every night.", []),
        ("colours that can be told apart", []),
        ("the nightly run", []),
        ("Mended; the books are held against the station's.", ["Mended", "books", "held against", "station"]),
    ],
)
def test_the_rules(text: str, words: list[str]) -> None:
    assert found(text) == words


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.c", "int room;\n/* no\n * room */ // a door", [(2, "/* no"), (3, " * room */"), (3, "// a door")]),
        ("a.yaml", "# one\nroom: 'a#b' # two", [(1, "# one"), (2, " # two")]),
    ],
)
def test_comments_are_what_is_read(tmp_path: Path, name: str, text: str, lines: list[tuple[int, str]]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert list(prose(tmp_path / name)) == lines
