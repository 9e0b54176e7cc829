# SPDX-License-Identifier: Apache-2.0
"""What every TCP must do, packet by packet: one file a rule, judged over the records of a point."""

from testctl.rules.core.registry import rules
from testctl.rules.core.spec import RuleSpec
from testctl.rules.judge import first_violation, violated, violations_of

__all__ = ["RuleSpec", "first_violation", "rules", "violated", "violations_of"]
