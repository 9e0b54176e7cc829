// SPDX-License-Identifier: GPL-2.0
/*
 * A fault on purpose, to test that a lab reports what its kernel reports.
 *
 * testctl_fault.warn=1 on the command line, or 1 written at run time to
 * /sys/module/testctl_fault/parameters/warn, is a warning of the kernel.
 * testctl_fault.overrun=1 reads the byte behind an allocation, which a kernel
 * with KASAN reports.
 */
#include <linux/bug.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_fault."

static int warn(const char *value, const struct kernel_param *param)
{
	bool on;
	int error = kstrtobool(value, &on);

	if (error)
		return error;
	WARN(on, "testctl_fault: a warning on purpose\n");
	return 0;
}

static const struct kernel_param_ops warn_ops = { .set = warn };
module_param_cb(warn, &warn_ops, NULL, 0200);

static int overrun(const char *value, const struct kernel_param *param)
{
	size_t size = 24;
	char *bytes;
	bool on;
	int error = kstrtobool(value, &on);

	if (error || !on)
		return error;
	bytes = kzalloc(size, GFP_KERNEL);
	if (!bytes)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(size);
	(void)READ_ONCE(bytes[size]);
	kfree(bytes);
	return 0;
}

static const struct kernel_param_ops overrun_ops = { .set = overrun };
module_param_cb(overrun, &overrun_ops, NULL, 0200);
