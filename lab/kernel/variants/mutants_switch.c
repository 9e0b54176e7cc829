// SPDX-License-Identifier: GPL-2.0
/*
 * Which mutant of testctl mutate is active, by testctl_mutants.active=N on the
 * command line (0: none), and which ones this boot has met:
 * /sys/module/testctl_mutants/parameters/seen has a hexadecimal digit for two
 * mutants, the first in its lower bits, each with TESTCTL_REACHED and
 * TESTCTL_DIFFERENT.
 */
#include <linux/kernel.h>
#include <linux/moduleparam.h>

#include "mutants_switch.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_mutants."

unsigned int testctl_mutant;
unsigned char testctl_mutants_seen[TESTCTL_MUTANTS];

module_param_named(active, testctl_mutant, uint, 0400);

static int seen(char *buffer, const struct kernel_param *param)
{
	unsigned int pair, number;

	for (pair = 0; pair < TESTCTL_MUTANTS / 2; pair++) {
		number = 2 * pair + 1;
		buffer[pair] = hex_asc[testctl_mutants_seen[number] | testctl_mutants_seen[number + 1] << 2];
	}
	return pair;
}

static const struct kernel_param_ops seen_ops = { .get = seen };
module_param_cb(seen, &seen_ops, NULL, 0400);
