// SPDX-License-Identifier: GPL-2.0
#include "growth_cubic.h"
#include "recovery_rfc6675.h"

TESTCTL_CC_RECOVERY(cubic_rfc6675, cubic, rfc6675)
