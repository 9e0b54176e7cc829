# SPDX-License-Identifier: Apache-2.0
"""The pages keep what they promise: links lead somewhere, plans load, commands run and print what is shown.

A comment before a fenced block says what it is:

    <!-- run -->                the block's commands (`$ …`, or Python) run in a directory of the page's own
    <!-- run: lab, exit 1 -->   they need the lab; the last one ends with that code, those before it with 0
    <!-- file: NAME -->         the block is that file, for what follows on the page
    <!-- part -->               keys of a plan: they replace those of the whole plan before it; tuples are added
    <!-- part: plans/NAME -->   the same, of that plan
    <!-- other -->              YAML that is no plan

Each line that is shown after a command is in its output, in this order; `…` stands for lines that are left out.
Numbers are not compared.  Other YAML is a whole plan.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from testctl.metrics import metric_names
from testctl.plan import load_plan

from tools.bench_serve import CHROMIUM

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OUTSIDE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "results" / "README.md"]
PAGES = [*OUTSIDE, *sorted(DOCS.rglob("*.md"))]
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((DOCS / "reference" / "plan.schema.json").read_text(encoding="utf-8"))
)
FENCE = re.compile(r"(?:^<!-- ([^\n]+?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
EXTERNAL = re.compile(r"[a-z]+:")
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"


@dataclass(frozen=True)
class Block:
    """A fenced block: the words of the comment before it, its language, its text and its first line's number."""

    mark: str
    language: str
    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """What follows the colon of the comment."""
        return [word.strip() for word in self.mark.partition(":")[2].split(",")]

    @property
    def runs(self) -> bool:
        return self.mark.partition(":")[0] == "run"

    @property
    def part(self) -> bool:
        return self.mark.partition(":")[0] == "part"

    @property
    def lab(self) -> bool:
        return self.runs and "lab" in self.words

    @property
    def exit(self) -> int:
        return next((int(word.split()[1]) for word in self.words if word.startswith("exit ")), 0)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1] or "", m[2], m[3], text[: m.start(3)].count("\n") + 1) for m in FENCE.finditer(text)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pages(wanted: Callable[[Block], bool]) -> list[Path]:
    return [page for page in PAGES if any(map(wanted, blocks(page)))]


# Links


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]+`", "code", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """Those that GitHub and mkdocs give to the headings; a heading for which they differ has none."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        words = re.sub(r"[^\w\s-]", "", re.sub(LINK, "", heading)).strip().lower()
        github, mkdocs = words.replace(" ", "-"), re.sub(r"[-\s]+", "-", words)
        found |= {github} if github == mkdocs else set()
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    wrong = []
    for target in LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if EXTERNAL.match(target):
            continue
        if not to.exists() or (DOCS in page.parents and DOCS not in to.parents):
            wrong.append(f"{target}: no such file in docs/")
        elif anchor and anchor not in anchors(to):
            wrong.append(f"{target}: no such heading")
    assert wrong == []


def test_the_index_has_every_page() -> None:
    linked = {target.partition("#")[0] for target in LINK.findall(prose(DOCS / "README.md"))}
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert sorted(page for page in there - linked if not page.startswith("adr/")) == []
    assert any(target.startswith("adr/") for target in linked)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_lists_and_tables_begin_after_an_empty_line(page: Path) -> None:
    """Python-Markdown, which makes the site, takes them for text otherwise."""
    lines = FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    wrong = []
    for before, line in itertools.pairwise(lines):
        begins = re.match(r"(- |\d+\. |\|)", line) and not re.match(r"(- |\d+\. |\||  |#|<!--)", before)
        if begins and before.strip() and not inside_a_list(lines, lines.index(line)):
            wrong.append(line)
    assert wrong == []


def inside_a_list(lines: list[str], at: int) -> bool:
    """Whether the paragraph that ends before a line is an item of a list."""
    while at > 0 and lines[at - 1].strip():
        at -= 1
        if re.match(r"\s*(- |\d+\. )", lines[at]):
            return True
    return False


# Plans


@pytest.mark.parametrize("page", pages(lambda block: block.language == "yaml"), ids=named)
def test_every_plan_loads(page: Path, tmp_path: Path) -> None:
    before = ""
    for block in blocks(page):
        if block.mark.startswith("file: "):
            (tmp_path / block.words[0]).write_text(block.text, encoding="utf-8")
        if block.language != "yaml" or block.mark == "other" or "nodes" in keys(block.text):
            continue  # the file of a topology is read by the plan that uses it
        before = before if block.part else block.text
        for number, text in enumerate(plans_of(block, before)):
            file = tmp_path / f"line_{block.line}_{number}.yaml"
            file.write_text(text, encoding="utf-8")
            assert load_plan(file, metrics=metric_names()).points
            SCHEMA.validate(written(keys(text)))


def plans_of(block: Block, before: str) -> list[str]:
    """The plans to try: a whole one, or one for each tuple of a part that sets what another one sets."""
    if not block.part:
        return [block.text]
    text = (ROOT / block.words[0]).read_text(encoding="utf-8") if block.words[0] else before
    assert text, f"line {block.line}: a part without a plan before it"
    plan, part = keys(text), keys(block.text)
    new: list[list[str]] = part.get("tuples", [])
    least = {tuple(one[:2]): one for one in [*plan["tuples"], *new]}
    each = [{**least, tuple(one[:2]): one} for one in new] or [least]
    plans = [{**plan, **part, "tuples": list(one.values())} for one in each]
    return [json.dumps(written(one, fractions=False), ensure_ascii=False) for one in plans]


def keys(text: str) -> dict[str, Any]:
    """A plan's keys; all values are text, as they are written."""
    found: dict[str, Any] = yaml.load(text, yaml.BaseLoader)
    return found


def written(value: object, *, fractions: bool = True) -> object:
    """With numbers as numbers."""
    if isinstance(value, dict):
        return {key: written(one, fractions=fractions) for key, one in value.items()}
    if isinstance(value, list):
        return [written(one, fractions=fractions) for one in value]
    text = str(value)
    if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text):
        return int(text)
    return float(text) if fractions and re.fullmatch(r"-?[0-9]+\.[0-9]+", text) else text


# Commands


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines that it prints."""
    for text in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n> ?", "", text).partition("\n")
        yield command, output.splitlines()


def masked(line: str) -> str:
    """A line without its numbers, ids and paddings; a quick machine's ms are another's s."""
    line = re.sub(r"\b(?=[a-f]*[0-9])[0-9a-f]{4,64}\b", "#", line)
    return re.sub(r"# m?s\b", "# s", " ".join(re.sub(r"[0-9][0-9.,:]*", "#", line).split()))


def missing(expected: list[str], output: str) -> str:
    """The first of the lines that the output has not after those before it."""
    lines = iter([masked(line) for line in output.splitlines()])
    for line in expected:
        if masked(line) not in ("", "…") and masked(line) not in lines:
            return line
    return ""


@pytest.mark.parametrize(
    ("shown", "printed", "first_missing"),
    [
        (["1 of 4 points fail"], "12 of 48 points  fail", ""),
        (["a", "…", "c"], "a\nb\nc", ""),
        (["c", "a"], "a\nb\nc", "a"),
        (["digest 0a1b2c3d"], "digest ffffffff00", ""),
        (["pass 715 ms, 0:04 left"], "pass 1.4 s, 1:04 left", ""),
        (["pass"], "fail", "pass"),
        (["added"], "faded", "added"),
    ],
)
def test_what_counts_as_printed(shown: list[str], printed: str, first_missing: str) -> None:
    assert missing(shown, printed) == first_missing


@dataclass(frozen=True)
class Session:
    """A page's directory, with the checkout's plans."""

    directory: Path
    page: Path

    def play(self, *, lab: bool) -> None:
        """All that runs on the page; without the lab what does not need it."""
        (self.directory / "plans").symlink_to(ROOT / "plans")
        for block in blocks(self.page):
            if block.mark.startswith("file: "):
                (self.directory / block.words[0]).write_text(block.text, encoding="utf-8")
            elif block.runs and (lab or not block.lab):
                self._block(block)

    def _block(self, block: Block) -> None:
        if block.language == "python":
            self._run([sys.executable, "-c", block.text], block, block.exit)
            return
        found = list(commands(block))
        assert found, f"{named(self.page)}:{block.line}: nothing to run"
        for number, (command, expected) in enumerate(found, start=1):
            output = self._run(["bash", "-c", command], block, block.exit if number == len(found) else 0)
            line = missing(expected, output)
            assert not line, f"{named(self.page)}:{block.line}: {command}: no line\n{line}\nin\n{output}"

    def _run(self, argv: list[str], block: Block, code: int) -> str:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "110", "NO_COLOR": "1", "PAGER": "cat"}
        done = subprocess.run(
            argv, cwd=self.directory, env=environment, timeout=600, check=False, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, f"{named(self.page)}:{block.line}: {argv[-1]}\n{done.stdout}"
        return done.stdout


@pytest.mark.parametrize("page", pages(lambda block: block.runs and not block.lab), ids=named)
def test_commands(page: Path, tmp_path: Path) -> None:
    Session(tmp_path, page).play(lab=False)


@pytest.mark.lab
@pytest.mark.parametrize("page", pages(lambda block: block.lab), ids=named)
def test_commands_in_the_lab(page: Path, tmp_path: Path) -> None:
    Session(tmp_path, page).play(lab=True)


# The site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MKDOCS.exists():
        pytest.skip("make docs installs mkdocs")
    where = tmp_path_factory.mktemp("site")
    argv = [str(ROOT / "tools" / "docs"), "--site-dir", str(where)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return where


def test_the_site_loads_nothing_from_a_network(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?https?:|<link\b[^>]*\bhref=["']?https?:""")
    assert [
        str(page.relative_to(site)) for page in site.rglob("*.html") if loaded.search(page.read_text("utf-8"))
    ] == []


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_its_search_works_from_the_disk(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator("input[name=query]").press_sequentially("covering")  # key by key: the search listens to keys
        page.wait_for_function("document.querySelectorAll('.md-search-result__link').length > 0", timeout=60_000)
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
