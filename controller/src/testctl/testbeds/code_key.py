# SPDX-License-Identifier: Apache-2.0
"""The code key: everything besides the point that determines its records in the lab, as text in verdict.json."""

from __future__ import annotations

from dataclasses import dataclass

_UNLIKE = (
    "another kernel",
    "other agents, tgen or first process of the lab",
    "another program of the switch",
    "another memory of the lab",
    "other words on the kernel's command line",
)
"""The description of a difference in each part, in their order."""


@dataclass(frozen=True)
class CodeKey:
    """kernel   the built kernel's key
    code        hash of the agents, tgen, the lab's first process and what starts it
    program     hash of the switch's compiled program; "" where none runs
    memory_mb   what every lab was given by the environment; "" where it was worked out, which the point determines
    boot        hash of the words added to the kernel's command line; "" where there are none
    """

    kernel: str
    code: str
    program: str = ""
    memory_mb: str = ""
    boot: str = ""

    def __str__(self) -> str:
        return "-".join(self._parts()).rstrip("-")

    @classmethod
    def parse(cls, text: str) -> CodeKey:
        """What `str` wrote, without the instruments of a replay behind it; parts that are not there are ""."""
        return cls(*[*text.partition("+")[0].split("-"), "", "", "", "", ""][: len(_UNLIKE)])

    def differences(self, other: CodeKey) -> list[str]:
        """Texts that describe the parts that differ."""
        return [name for name, a, b in zip(_UNLIKE, self._parts(), other._parts(), strict=True) if a != b]

    def _parts(self) -> tuple[str, str, str, str, str]:
        return self.kernel, self.code, self.program, self.memory_mb, self.boot
