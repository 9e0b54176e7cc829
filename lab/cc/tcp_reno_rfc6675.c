// SPDX-License-Identifier: GPL-2.0
#include "growth_reno.h"
#include "recovery_rfc6675.h"

TESTCTL_CC_RECOVERY(reno_rfc6675, reno, rfc6675)
