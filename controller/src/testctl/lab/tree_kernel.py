# SPDX-License-Identifier: Apache-2.0
"""The kernel of a tree that a command names with --source: built where it is not, and what changed since the last."""

from __future__ import annotations

from testctl.lab import kernel as kernels
from testctl.lab.inputs import Inputs
from testctl.lab.kernel import CHANGED, Kernel
from testctl.lab.make import Progress
from testctl.lab.source import find, split_revision

SOURCE = "source"
"""Its name as a plan's `kernel` tuple has it: the same for all trees and revisions, as then are their points."""


def build_tree(text: str, progress: Progress, jobs: int, variant: str = "") -> tuple[Kernel, list[str] | None]:
    """The kernel of DIR or DIR@REV, and the files that changed since the last build of that tree.

    variant: such as coverage, whose kernel is called source-coverage; "": the one that plans get

    None for the files: it was built before, or it is the first build of the tree.  Raises PlanError, TestbedError.
    """
    name = f"{SOURCE}-{variant}" if variant else SOURCE
    source = find(name, *split_revision(text), variant)
    kernel = kernels.locate(name, Inputs.of(source))
    if kernel.built:
        return kernel, None
    kernel = kernels.build(source, progress, jobs)
    file = kernel.directory / CHANGED
    return kernel, file.read_text(encoding="utf-8").split() if file.is_file() else None
