# SPDX-License-Identifier: Apache-2.0
"""Congestion marks: CE on data that reached the receiver, ECE on ACKs that reached the sender."""

from __future__ import annotations

from testctl.metrics.acks import bare
from testctl.metrics.core.accurate_ecn import accurate_ecn
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import CE, ECE

SPEC = MetricSpec(
    name="ce",
    help="congestion marks on data and on ACKs",
    needs="receiver",
    values=(
        MetricInfo("ce_marks", "", "data packets that reached the receiver with CE"),
        MetricInfo("ce_fraction", "", "ce_marks / data packets that reached the receiver"),
        MetricInfo(
            "ece_fraction",
            "",
            "ACKs with ECE / ACKs without payload that reached the sender, as acks_received counts them; NaN where a "
            "connection agreed on Accurate ECN, whose ACKs have a counter in that bit's place",
            needs="sender",
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    segs = seen.arrived["segs"]
    marks, packets = int(segs[seen.arrived["ecn"] == CE].sum()), int(segs.sum())
    echoes = seen.acks_in["flags"][bare(seen.acks_in)] & ECE > 0
    echoed = len(echoes) and not accurate_ecn(seen)
    return {
        "ce_marks": marks,
        "ce_fraction": marks / packets if packets else NAN,
        "ece_fraction": float(echoes.mean()) if echoed else NAN,
    }
