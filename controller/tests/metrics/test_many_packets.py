# SPDX-License-Identifier: Apache-2.0
"""A point with many packets is read and analysed with less memory, and gives the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.metrics import _analyse, analyse
from testctl.metrics.core import view
from testctl.records import load_raw, packets

from controller.tests.support.synthetic import write_point
from controller.tests.support.synthetic_recovery import Sender


def test_few_packets_as_if_they_were_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_raw(write_point(tmp_path, Sender("prr", 20, 60, [0, 3, 7]).run().talk.captures()))
    found = analyse(whole)
    assert found.metrics["bulk"]["recoveries"] > 0
    monkeypatch.setattr(packets, "_PIECE", 7)
    for module in (view, _analyse):
        monkeypatch.setattr(module, "MANY", 0)
    again = load_raw(tmp_path)
    assert again.packets["sack1_start"].num_chunks > 10
    assert (np.asarray(again.packets["sack1_start"].to_numpy()) >= 0).any()
    assert again.digest() == whole.digest()
    same = analyse(again)
    assert repr(same.metrics) == repr(found.metrics)
    assert same.stalls.equals(found.stalls)
    assert not any(rows.memo for rows in vars(view.view(again, "bulk")).values() if isinstance(rows, view.Rows))
