# SPDX-License-Identifier: Apache-2.0
"""testctl new."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from testctl_agent.spec.errors import PlanError

from testctl.system import checkout

SCHEMA = Path("docs/reference/plan.schema.json")
"""In the checkout."""
MODELINE = "# yaml-language-server: $schema={}"

TEXT = """\
{modeline}
# A plan of testctl.  Next: `testctl plan {file}` (a dry run), then `testctl run {file}`.
about: One flow over a bottleneck, with two congestion controls

# Hosts, switches and links; `testctl topologies` lists the others.  pair: sender - switch - receiver
topology: pair

# NAME: HOST -> HOST, as many as you like
flows: {{bulk: sender -> receiver}}

# [entity, parameter, value]; a list of values is swept: a point for every combination.
# An entity is a host, a switch, a port (switch:receiver is the switch's port toward the receiver), a flow, or a group
# (hosts, switches, flows, all).  `testctl params host` lists what a host has, `testctl params rate` explains one.
tuples:
  - [hosts, cc, [cubic, reno]]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 100kB]
  - [switch, delay, 5ms]            # of every port of the switch: the round trip takes 10 ms
  - [bulk, duration, 3s]

# What has to hold; `testctl metrics` lists the metrics.  Without an expectation a point passes when it was measured.
expect:
  - name: the link is used
    metric: saturation              # throughput as a share of the bottleneck's rate
    min: 0.8
  - name: no timeout
    metric: retransmission_timeouts
    equals: 0

# More, when it is wanted:
# repeat: 3                         # every point three times, each with the next seed
# exclude: [{{hosts.cc: reno, switch.delay: 5ms}}]
# design: {{cover: 2}}                # all pairs of values in few points, in place of every combination
# figures: [{{kind: metric, metric: saturation, x: hosts.cc}}, {{kind: throughput, title: All flows}}]
"""


def new(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="the file to write, such as mine.yaml")],
) -> None:
    """Write a commented plan that runs and passes in the lab.  An existing file is never changed."""
    if file.suffix != ".yaml" or not file.stem:
        raise PlanError(f"{file}: want a file name that ends in .yaml")
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(TEXT.format(modeline=modeline(file), file=file))
    except FileExistsError as error:
        raise PlanError(f"{file}: exists already, and is not changed") from error
    except (OSError, ValueError) as error:
        raise PlanError(f"{file}: can't be written: {getattr(error, 'strerror', None) or error}") from error
    print(f"wrote {file}\nnext: testctl plan {file}, then testctl run {file}")


def modeline(file: Path) -> str:
    """The comment by which an editor's YAML language server finds the schema of plans.

    Its path begins at the plan where both are in the checkout.
    """
    root = checkout.root()
    schema, place = root / SCHEMA, file.absolute().parent
    if place.resolve().is_relative_to(root):
        return MODELINE.format(os.path.relpath(schema, place.resolve()))
    return MODELINE.format(schema)
