// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that wake at one instant run in the order in which they were woken.
 *
 * Virtual time stands still while a process computes, so what the scheduler
 * charges a process depends on who happened to run when a tick passed.  Before
 * the traffic that differs from run to run: Python's threads and gRPC wait on
 * the processor's own counter.  What was charged then would decide which of
 * two flows that start together sends first.  Writing to
 * /sys/module/testctl_sched/parameters/forget forgets it for all processes
 * that sleep; from there on the scheduler is the kernel's own, and repeats.
 */
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_sched."

static int forget(const char *value, const struct kernel_param *param)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task) {
		if (task->on_rq)
			continue;
		task->se.vruntime = 0;
#ifdef TESTCTL_SCHED_HAS_LAG
		task->se.deadline = 0;
		task->se.vlag = 0;
#endif
#ifdef TESTCTL_SCHED_HAS_REL_DEADLINE
		task->se.rel_deadline = 0;
#endif
	}
	rcu_read_unlock();
	return 0;
}

static const struct kernel_param_ops forget_ops = { .set = forget };
module_param_cb(forget, &forget_ops, NULL, 0200);
