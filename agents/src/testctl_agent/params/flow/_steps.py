# SPDX-License-Identifier: Apache-2.0
"""An amount that the kernel takes in a coarser unit than ours."""

from __future__ import annotations

from dataclasses import dataclass

from testctl_agent.spec.types import Amount, Value


@dataclass(frozen=True)
class InSteps(Amount):
    """An Amount that is a multiple of `step`."""

    step: int = 1

    @property
    def want(self) -> str:
        return f"{super().want}, in steps of {self.of(self.step)}"

    def parse(self, raw: object) -> Value:
        value = super().parse(raw)
        if not isinstance(value, str) and int(value) % self.step:
            raise ValueError(f"want {self.want}; got {raw!r}")
        return value
