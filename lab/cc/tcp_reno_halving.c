// SPDX-License-Identifier: GPL-2.0
#include "growth_reno.h"
#include "recovery_halving.h"

TESTCTL_CC_RECOVERY(reno_halving, reno, halving)
