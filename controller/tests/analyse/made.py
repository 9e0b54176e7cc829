# SPDX-License-Identifier: Apache-2.0
"""The records and results of captures, without a run's directory."""

from __future__ import annotations

from pathlib import Path

from testctl.analyse import Chosen, choose, scan
from testctl.analyse.assess import assess_capture
from testctl.analyse.ends import At
from testctl.analyse.run import records_and_notes, with_what_is_known
from testctl.execution.assess import Assessment
from testctl.records import Records


def records_of(work: Path, *files: Path, at: At | None = None) -> tuple[Records, Chosen, list[str]]:
    chosen = choose([scan(file) for file in files], at)
    work.mkdir(exist_ok=True)
    records, notes = records_and_notes(chosen, work)
    return with_what_is_known(records, chosen, notes), chosen, notes


def assessed(work: Path, *files: Path, at: At | None = None) -> tuple[Records, Assessment]:
    return assess_capture(records_of(work, *files, at=at)[0])
