// SPDX-License-Identifier: GPL-2.0
#include "growth_cubic.h"
#include "recovery_prr.h"

TESTCTL_CC_RECOVERY(cubic_prr, cubic, prr)
