// SPDX-License-Identifier: GPL-2.0
#include "growth_reno.h"
#include "recovery_prr.h"

TESTCTL_CC_RECOVERY(reno_prr_crb, reno, prr_crb)
