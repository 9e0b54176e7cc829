/* SPDX-License-Identifier: GPL-2.0 */
/* The lab's random numbers (lab_random.c). */
#ifndef TESTCTL_LAB_RANDOM_H
#define TESTCTL_LAB_RANDOM_H

#include <linux/types.h>

/*
 * The state of a stream of its own, from which all that draw get their numbers as long as it is set;
 * NULL: they get them from the lab's stream.  Set with softirqs off, and only around a call.
 */
extern u64 *testctl_random_of;

/* The next number of a stream with this state. */
u64 testctl_random_next(u64 *stream);

#endif
