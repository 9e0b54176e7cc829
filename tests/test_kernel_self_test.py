# SPDX-License-Identifier: Apache-2.0
"""A built kernel passes its self-test, and user processes by seccomp change nothing where it has that."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.execution.kernel_test import self_test
from testctl.lab.kernel import Kernel
from testctl.lab.self_test import has_seccomp, kept


@pytest.mark.lab
def test_a_built_kernel_passes_its_self_test(kernel: Path, tmp_path: Path) -> None:
    name, _, key = kernel.parent.name.rpartition("-")
    (tmp_path / "linux").symlink_to(kernel)
    found = self_test(Kernel(name, key, tmp_path))
    assert found.ok, found.summary
    assert kept(tmp_path) == found
    assert found.seccomp == has_seccomp(kernel), found.checks
