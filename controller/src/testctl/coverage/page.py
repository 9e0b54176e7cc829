# SPDX-License-Identifier: Apache-2.0
"""The sources as pages: each line with how many points executed it, and how often."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from testctl.core.words import counted as count_words
from testctl.coverage.table import Coverage, SourceFile
from testctl.results.atomic import naming_path, write_text

_STYLE = """
:root { color-scheme: light dark; --reached: #2e7d3240; --part: #b2882040; --never: #c6282838; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 1rem auto; max-width: 110rem; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: 0 .6rem; text-align: right; }
td:first-child, th:first-child { text-align: left; }
.source { overflow-x: auto; } .source td { font: 12px/1.5 ui-monospace, monospace; white-space: pre; tab-size: 8; }
.source td:last-child { text-align: left; } .reached { background: var(--reached); }
.part { background: var(--part); } .never { background: var(--never); } .source td:target { outline: 2px solid; }
"""


def write_pages(counted: Coverage, files: Sequence[SourceFile], directory: Path) -> Path:
    """Write index.html and a page for each file; returns index.html.  Raises TestbedError where they can't be."""
    with naming_path(directory, "no page was written"):
        directory.mkdir(parents=True, exist_ok=True)
        rows = []
        for file in files:
            page = f"{file.name.replace('/', '_')}.html"
            write_text(directory / page, _source(counted, file))
            cells = [f"<td>{reached} / {total}" for reached, total in file.reached]
            rows.append(f'<tr><td><a href="{page}">{html.escape(file.name)}</a>{"".join(cells)}')
        heads = "<tr><th>file<th>lines<th>branches<th>functions"
        index = directory / "index.html"
        write_text(index, _page(f"What {_of(counted)} executed", f"<table>{heads}{''.join(rows)}</table>"))
    return index


def _of(counted: Coverage) -> str:
    return f"{count_words(len(counted.points), 'point')} of kernel {counted.kernel}"


def _source(counted: Coverage, file: SourceFile) -> str:
    """A page: a row for each line; reached, never, or part: a branch of it was never taken."""
    untaken = {line for (line, _, _), counts in file.branches.items() if not counts.any()}
    rows = ["<tr><th>line<th>points<th>executions<th>"]
    for number, text in enumerate(counted.text(file.name), 1):
        counts = file.lines.get(number)
        kind = cells = ""
        if counts is not None:
            points = int((counts > 0).sum())
            kind = "never" if not points else "part" if number in untaken else "reached"
            cells = f"<td>{points}<td>{int(counts.sum())}"
        rows.append(f'<tr class="{kind}"><td id="L{number}">{number}{cells or "<td><td>"}<td>{html.escape(text)}')
    (lines, all_lines), (branches, all_branches), _ = file.reached
    facts = f"<p>{_of(counted)}: {lines} of {all_lines} lines, {branches} of {all_branches} branches.</p>"
    return _page(file.name, f'{facts}<div class="source"><table>{chr(10).join(rows)}</table></div>')


def _page(title: str, body: str) -> str:
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f"{head}<title>{html.escape(title)}</title><style>{_STYLE}</style><h1>{html.escape(title)}</h1>{body}\n"
