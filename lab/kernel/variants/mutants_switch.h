/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The switches of testctl mutate: each mutation of a file that includes this
 * stands behind a call with its number.  Every call marks its mutant as
 * reached and, where the two forms give another value, as different.
 */
#ifndef TESTCTL_MUTANTS_SWITCH_H
#define TESTCTL_MUTANTS_SWITCH_H

#include <linux/types.h>

#define TESTCTL_MUTANTS 8001
#define TESTCTL_REACHED 1
#define TESTCTL_DIFFERENT 2

extern unsigned int testctl_mutant;
extern unsigned char testctl_mutants_seen[TESTCTL_MUTANTS];

/* The section lists the mutants that are compiled in: others stand in code that the configuration leaves out. */
static __always_inline bool testctl_is_if(unsigned int number, bool different)
{
	asm volatile(".pushsection .testctl_mutants, \"\"\n\t.long %c0\n\t.popsection" :: "i" (number));
	testctl_mutants_seen[number] |= TESTCTL_REACHED | (different ? TESTCTL_DIFFERENT : 0);
	return testctl_mutant == number;
}

static __always_inline bool testctl_is(unsigned int number)
{
	return testctl_is_if(number, true);
}

static __always_inline bool testctl_not(unsigned int number, bool condition)
{
	return testctl_is(number) ? !condition : condition;
}

static __always_inline bool testctl_true(unsigned int number, bool condition)
{
	return testctl_is_if(number, !condition) || condition;
}

static __always_inline bool testctl_false(unsigned int number, bool condition)
{
	return !testctl_is_if(number, condition) && condition;
}

#endif
