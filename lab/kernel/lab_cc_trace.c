// SPDX-License-Identifier: GPL-2.0
/*
 * What the congestion controls of lab/cc were called with and what they decided,
 * event by event, as BPF's ring has it on a running kernel (testctl_cc_struct_ops.h).
 *
 *	echo 100000 > /proc/testctl_cc_trace	space for so many records; 0: off
 *	cat /proc/testctl_cc_trace		struct cc_trace_record, one by one
 *
 * Writing forgets what was recorded before.  A read of a trace with an event
 * that did not fit fails with ENOSPC.
 */
#include <linux/bottom_half.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "testctl_cc.h"

#define MOST_RECORDS (1U << 22)

u32 cc_trace_room;
static struct cc_trace_record *records;
static u32 count;
static bool full;

void cc_trace_add(const struct cc_trace_record *record)
{
	local_bh_disable(); /* UML has one processor: this is the lock */
	if (count < cc_trace_room)
		records[count++] = *record;
	else
		full = true;
	local_bh_enable();
}

static ssize_t trace_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	if (full)
		return -ENOSPC;
	return simple_read_from_buffer(to, bytes, at, records, count * sizeof(*records));
}

static ssize_t trace_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	struct cc_trace_record *fresh = NULL, *old;
	u32 room;
	int error = kstrtou32_from_user(from, bytes, 0, &room);

	if (error)
		return error;
	if (room > MOST_RECORDS)
		return -ERANGE;
	if (room) {
		fresh = vmalloc(array_size(room, sizeof(*fresh)));
		if (!fresh)
			return -ENOMEM;
	}
	local_bh_disable();
	old = records;
	records = fresh;
	cc_trace_room = room;
	count = 0;
	full = false;
	local_bh_enable();
	vfree(old);
	return bytes;
}

static const struct proc_ops trace_ops = {
	.proc_read = trace_read,
	.proc_write = trace_write,
	.proc_lseek = default_llseek,
};

static int __init cc_trace_init(void)
{
	return proc_create("testctl_cc_trace", 0600, NULL, &trace_ops) ? 0 : -ENOMEM;
}
device_initcall(cc_trace_init);
