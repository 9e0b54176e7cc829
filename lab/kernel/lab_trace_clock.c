// SPDX-License-Identifier: GPL-2.0
/*
 * The times of trace events, where the kernel has tracepoints, in virtual
 * nanoseconds.  The kernel's own clock for them counts ticks on this
 * architecture, and one that reads the clock would move it, and the packets
 * with it.
 */
#include <linux/compiler.h>
#include <linux/types.h>

extern unsigned long long time_travel_time;	/* edits.yaml has it shared */
u64 notrace __wrap_trace_clock_local(void);

u64 notrace __wrap_trace_clock_local(void)
{
	return time_travel_time;
}
