// SPDX-License-Identifier: GPL-2.0
#include "growth_cubic.h"
#include "recovery_halving.h"

TESTCTL_CC_RECOVERY(cubic_halving, cubic, halving)
