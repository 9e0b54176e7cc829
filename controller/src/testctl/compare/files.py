# SPDX-License-Identifier: Apache-2.0
"""Writes verdict files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.compare.github import SUMMARY
from testctl.compare.junit import junit
from testctl.compare.markdown import markdown
from testctl.compare.sarif import sarif, uri_of_file
from testctl.compare.verdicts import Verdicts
from testctl.results import layout

FORMS: Mapping[str, Callable[[Verdicts], str]] = {"junit": junit, "sarif": sarif, "markdown": markdown}


def uri_of(run: Path) -> str:
    """URI of a run's copy of its plan, the location of findings."""
    return uri_of_file(str(run / layout.PLAN))


def write_verdicts(judged: Verdicts, wanted: Mapping[str, Path | None]) -> None:
    """Write the selected formats, {format: file}.  Raises PlanError if a file can't be written.

    A page for the summary of a job of GitHub Actions is appended to it: earlier steps have written there.
    """
    for form, path in wanted.items():
        if path is None:
            continue
        try:
            appended = form == "markdown" and str(path) == os.environ.get(SUMMARY)
            with path.open("a" if appended else "w", encoding="utf-8") as file:
                file.write(FORMS[form](judged))
        except OSError as error:
            raise PlanError(f"--{form} {path}: can't write it: {error.strerror}") from error
