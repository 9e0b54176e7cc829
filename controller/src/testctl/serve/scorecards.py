# SPDX-License-Identifier: Apache-2.0
"""The scorecards below results/, of `testctl certify` and `testctl papers`: one line each, and their pages.

A page has links such as ../RUN/report.html#/run/RUN/point/ID.  Where it is read here, the browser is sent from
/scorecards/RUN/report.html to the start page, and keeps what follows the #: the run's or point's page of serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from starlette.responses import RedirectResponse, Response
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import misfit

from testctl.report.claims import BADGES
from testctl.results import layout, shapes
from testctl.serve import files, listing
from testctl.serve.cache import Cache, stamp

MOST = 200
"""Scorecards that are listed, the newest names."""

MOST_NAMES, MOST_LETTERS = 30, 100
"""Congestion controls of a scorecard that are named, and letters of a text."""

MOST_DATA = 16 << 20
"""Bytes of a scorecard.json that is read; one of ten congestion controls has less than one MiB."""

_HEADERS = {
    # No script, no form, nothing that is loaded.  Its origin stays this server's, so that its links bring the cookie.
    "Content-Security-Policy": "sandbox allow-same-origin; default-src 'none'; style-src 'unsafe-inline';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "unsafe-none",  # browsers refuse a sandboxed page with any other
    "Cache-Control": "private, no-cache",
}


class Scorecards:
    """What the home page shows of scorecards; each is read again when its file changes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept = Cache(MOST)

    def lines(self) -> list[dict[str, Any]]:
        """Newest first.

        name     of its directory
        kind     "certify" or "papers"
        ccs      the one that is tested, and the others
        counts   [verdict whose look it has, "3 fail"]
        missed, musts   criteria that MUST be evaluated: how many do not pass, of how many
        kernel, started  the time in ISO 8601, UTC
        damage   why scorecard.json can't be read; then the others are empty
        """
        there = list(listing.scorecards(self._root).items())[:MOST]
        lines = [
            self._kept.get(name, stamp(path / layout.SCORECARD_DATA), partial(_line, path)) for name, path in there
        ]
        return sorted(lines, key=lambda line: (line["started"], line["name"]), reverse=True)


def page(root: Path, name: str, file: str) -> Response:
    """Of /scorecards/NAME/scorecard.html, and of /scorecards/RUN/report.html the way to the run's page.

    Raises PlanError.
    """
    if file == layout.REPORT:
        listing.run_path(root, name)
        return RedirectResponse("/", 303, {"Cache-Control": "no-store"})
    there = listing.scorecards(root)
    if file != layout.SCORECARD_PAGE or name not in there:
        raise listing.Unknown(f"there is no scorecard {name[:100]!r} here")
    return files.sent(there[name] / layout.SCORECARD_PAGE, _HEADERS)


def _line(path: Path) -> dict[str, Any]:
    line: dict[str, Any] = {
        "name": path.name, "kind": "", "ccs": [], "counts": [], "missed": None, "musts": None, "kernel": "",
        "started": "", "damage": "",
    }  # fmt: skip
    try:
        file = listing.own_file(path, layout.SCORECARD_DATA)
        if file is not None and file.lstat().st_size > MOST_DATA:
            raise PlanError(f"{layout.SCORECARD_DATA}: want at most {MOST_DATA >> 20} MiB")
        return line | _facts(listing.own_json(path, layout.SCORECARD_DATA))
    except (PlanError, OSError) as error:
        return line | {"damage": str(error).replace(str(path), path.name)[:300]}


def _facts(data: Mapping[str, Any]) -> dict[str, Any]:
    if "criteria" in data:
        return _certified(data)
    if why := misfit(data, shapes.PAPERS):
        raise PlanError(f"{layout.SCORECARD_DATA}: {why}")
    counts = [[look, f"{data['counts'][name]} {name}"] for name, look in BADGES.items() if data["counts"].get(name)]
    return _common(data) | {"kind": "papers", "counts": counts}


def _certified(data: Mapping[str, Any]) -> dict[str, Any]:
    if why := misfit(data, shapes.CERTIFY):
        raise PlanError(f"{layout.SCORECARD_DATA}: {why}")
    criteria, cc = data["criteria"], data["cc"]
    own = [(criterion["level"], criterion["results"].get(cc, {}).get("verdict", "")) for criterion in criteria]
    counted = Counter(verdict for _, verdict in own)
    musts = [verdict for level, verdict in own if level == "MUST"]
    named = dict.fromkeys([cc, *(name for criterion in criteria for name in criterion["results"])])
    return _common(data) | {
        "kind": "certify",
        "ccs": [name[:MOST_LETTERS] for name in named][:MOST_NAMES],
        "counts": [[verdict, f"{counted[verdict]} {verdict}"] for verdict in layout.VERDICTS if counted[verdict]],
        "missed": len(musts) - musts.count("pass"),
        "musts": len(musts),
    }


def _common(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"kernel": (data.get("kernel") or "")[:MOST_LETTERS], "started": _time(data["started"])}


def _time(text: str) -> str:
    """UTC, ISO 8601; "" for another text."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return ""
    return text
