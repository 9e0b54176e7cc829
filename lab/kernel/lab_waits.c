// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that wait without sleeping, in a kernel where computing takes no time.
 *
 * A program that calls times(2) or sched_yield(2) until something changes would
 * go on for ever: the clock moves when all sleep, or when it is read.  With
 * testctl_waits.on=1 such a call sleeps: times(2) until the next tick when the
 * same task has had an answer in this one, sched_yield(2) for 1 us when no other
 * task has run since the same task yielded before.  Nothing else is changed.
 * packetdrill waits for the edge of a tick so.
 *
 * /sys/module/testctl_waits/parameters/on is off after the boot: plans have no
 * such programs, and what their programs see stays as it was.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/times.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_waits."

#define YIELD_NS 1000

static bool on;
module_param(on, bool, 0600);

static struct {
	pid_t task;
	unsigned long at;	/* ticks */
} asked;

static struct {
	pid_t task;
	unsigned long switches;	/* of the task's context, ever */
} yielded;

long __real_sys_times(struct tms __user *buffer);
long __wrap_sys_times(struct tms __user *buffer);
long __real_sys_sched_yield(void);
long __wrap_sys_sched_yield(void);

long __wrap_sys_times(struct tms __user *buffer)
{
	if (on && asked.task == current->pid && asked.at == jiffies)
		schedule_timeout_interruptible(1);
	asked.task = current->pid;
	asked.at = jiffies;
	return __real_sys_times(buffer);
}

long __wrap_sys_sched_yield(void)
{
	long result = __real_sys_sched_yield();
	unsigned long switches = current->nvcsw + current->nivcsw;

	if (on && yielded.task == current->pid && yielded.switches == switches) {
		ktime_t time = YIELD_NS;

		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout(&time, HRTIMER_MODE_REL);
	}
	yielded.task = current->pid;
	yielded.switches = current->nvcsw + current->nivcsw;
	return result;
}
