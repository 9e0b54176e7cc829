// SPDX-License-Identifier: GPL-2.0
/*
 * Faults on purpose that only a kernel with debug checks reports, beside those
 * of lab_fault.c.  Each is a word of the command line, done at the end of the
 * boot, or 1 written at run time to /sys/module/testctl_fault/parameters/NAME:
 *
 * testctl_fault.overwrite=1  writes the byte behind an allocation (KASAN)
 * testctl_fault.shift=1      shifts an int by 40 bits (UBSAN)
 * testctl_fault.order=1      takes two locks in one order, then in the other
 *                            (lockdep)
 * testctl_fault.sleep=1      may sleep with a spinlock held
 * testctl_fault.list=1       adds to a list whose links are wrong
 * testctl_fault.object=1     frees a timer that is active (debug objects)
 */
#include <linux/kstrtox.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_fault."

static int result;

static int overwrite(void)
{
	size_t size = 24;
	char *bytes = kzalloc(size, GFP_KERNEL);

	if (!bytes)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(size);
	WRITE_ONCE(bytes[size], 1);
	kfree(bytes);
	return 0;
}

static int shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	WRITE_ONCE(result, 1 << by);
	return 0;
}

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static int order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static DEFINE_SPINLOCK(held);

static int sleep(void)
{
	spin_lock(&held);
	might_sleep();
	spin_unlock(&held);
	return 0;
}

static int list(void)
{
	LIST_HEAD(head);
	LIST_HEAD(other);
	LIST_HEAD(entry);

	head.next = &other;
	list_add(&entry, &head);
	return 0;
}

struct timed {
	struct timer_list timer;
};

static void expired(struct timer_list *timer)
{
}

static int object(void)
{
	struct timed *timed = kzalloc(sizeof(*timed), GFP_KERNEL);

	if (!timed)
		return -ENOMEM;
	timer_setup(&timed->timer, expired, 0);
	mod_timer(&timed->timer, jiffies + HZ);
	kfree(timed); /* debug objects deactivate it */
	return 0;
}

/* Each parameter's argument is its function. */
static int set(const char *value, const struct kernel_param *param)
{
	int (*fault)(void) = param->arg;
	bool on;
	int error = kstrtobool(value, &on);

	return error || !on ? error : fault();
}

static const struct kernel_param_ops ops = { .set = set };
late_param_cb(overwrite, &ops, overwrite, 0200);
late_param_cb(shift, &ops, shift, 0200);
late_param_cb(order, &ops, order, 0200);
late_param_cb(sleep, &ops, sleep, 0200);
late_param_cb(list, &ops, list, 0200);
late_param_cb(object, &ops, object, 0200);
