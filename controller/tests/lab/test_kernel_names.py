# SPDX-License-Identifier: Apache-2.0
"""A kernel is found by a name, never by a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab import kernel
from testctl_agent.spec.errors import PlanError, TestbedError

KEY = "0123456789abcdef"


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    found = tmp_path / "kernels"
    for place in (found / f"mine-{KEY}", tmp_path / f"mine-{KEY}"):
        place.mkdir(parents=True)
        (place / "linux").touch()
    return found


def test_a_name_that_was_remembered(kernels: Path) -> None:
    kernel.remember(kernel.Kernel("mine", KEY, kernels / f"mine-{KEY}"))
    assert kernel.by_name("mine") == kernel.Kernel("mine", KEY, kernels / f"mine-{KEY}")
    assert kernel.by_name("other") is None


@pytest.mark.parametrize("name", ["", ".", "..", "../mine", "/tmp/mine", "a/b", "a\nb", "mine\n", "a" * 42, "-x"])
def test_a_name_that_is_a_path(kernels: Path, name: str) -> None:
    with pytest.raises(PlanError, match="want a name of letters"):
        kernel.by_name(name)


@pytest.mark.parametrize(
    "said", ["", f"../mine-{KEY}", f"/mine-{KEY}", f"other-{KEY}", "mine-", f"mine-{KEY}0", f"mine-{KEY}/../x", KEY]
)
def test_what_is_remembered_is_a_directory_of_the_cache(kernels: Path, said: str) -> None:
    kernel.name_file("mine").write_text(said, encoding="utf-8")
    with pytest.raises(TestbedError, match=r"mine\.name: want mine-<16 hexadecimal digits>"):
        kernel.by_name("mine")
