// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the machine that the lab's kernel writes, and the files of /proc that begin and end
 * them: lab_host_file.h.
 *
 * The machine's rights are those of the user who started the lab.  Root in the lab may write
 * there whatever that user may, as by a mount of hostfs.
 */
#include <linux/bottom_half.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/limits.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <os.h>

#include "lab_host_file.h"

#define LONGEST_WORDS 1024
#define TOLD_BYTES 256

static DEFINE_MUTEX(control);

int lab_file_open(struct lab_file *file, const char *path)
{
	*file = (struct lab_file){ };
	file->buffer = (void *)__get_free_pages(GFP_KERNEL, LAB_FILE_ORDER);
	if (!file->buffer)
		return -ENOMEM;
	file->fd = os_open_file(path, of_cloexec(of_trunc(of_create(of_write(OPENFLAGS())))), 0666);
	if (file->fd < 0) {
		free_pages((unsigned long)file->buffer, LAB_FILE_ORDER);
		file->buffer = NULL;
		return file->fd;
	}
	return 0;
}

/* Write the buffer's bytes.  After an error nothing more is written. */
static void flush(struct lab_file *file)
{
	u32 done = 0;
	int wrote;

	while (!file->error && done < file->used) {
		wrote = os_write_file(file->fd, file->buffer + done, file->used - done);
		if (wrote > 0)
			done += wrote;
		else if (wrote != -EINTR)
			file->error = wrote ? wrote : -EIO;
	}
	file->used = 0;
}

void *lab_file_space(struct lab_file *file, u32 bytes)
{
	if (file->used + bytes > LAB_FILE_BYTES)
		flush(file);
	return file->error ? NULL : file->buffer + file->used;
}

void lab_file_put(struct lab_file *file, u32 bytes)
{
	file->used += bytes;
	file->bytes += bytes;
}

void lab_file_close(struct lab_file *file)
{
	if (!file->buffer)
		return;
	flush(file);
	os_close_file(file->fd);
	free_pages((unsigned long)file->buffer, LAB_FILE_ORDER);
	file->buffer = NULL;
}

static void close_all(struct lab_recorder *recorder)
{
	local_bh_disable();
	lab_file_close(&recorder->file);
	local_bh_enable();
	put_net(recorder->net);
	recorder->net = NULL;
}

static int begin(struct lab_recorder *recorder, char *words)
{
	char *path = strchr(words, '/');
	int error;

	if (recorder->net)
		return -EBUSY;
	if (!path || path == words)
		return -EINVAL;
	error = lab_file_open(&recorder->file, path);
	if (error)
		return error;
	*path = 0;
	recorder->net = get_net(current->nsproxy->net_ns);
	error = recorder->type->begin(recorder, strim(words));
	if (error)
		close_all(recorder);
	return error;
}

static void stop(struct lab_recorder *recorder)
{
	if (!recorder->net)
		return;
	recorder->type->end(recorder);
	close_all(recorder);
}

static int recorder_open(struct inode *inode, struct file *file)
{
	const struct lab_recorder_type *type = pde_data(inode);
	struct lab_recorder *recorder = kzalloc(type->bytes, GFP_KERNEL);

	if (!recorder)
		return -ENOMEM;
	recorder->type = type;
	file->private_data = recorder;
	return 0;
}

static int recorder_release(struct inode *inode, struct file *file)
{
	stop(file->private_data);
	kfree(file->private_data);
	return 0;
}

static ssize_t recorder_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	struct lab_recorder *recorder = file->private_data;
	char *text;
	int error = 0;

	if (bytes > PATH_MAX + LONGEST_WORDS)
		return -E2BIG;
	text = memdup_user_nul(from, bytes);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&control);
	if (!strcmp(text, "stop"))
		stop(recorder);
	else
		error = begin(recorder, text);
	mutex_unlock(&control);
	kfree(text);
	return error ? error : bytes;
}

static ssize_t recorder_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	const struct lab_recorder *recorder = file->private_data;
	char text[TOLD_BYTES];
	int length;

	mutex_lock(&control);
	length = recorder->type->tell(recorder, text, sizeof(text));
	length += scnprintf(text + length, sizeof(text) - length, "bytes=%llu\nerror=%d\n",
			    recorder->file.bytes, -recorder->file.error);
	mutex_unlock(&control);
	return simple_read_from_buffer(to, bytes, at, text, length);
}

static const struct proc_ops recorder_operations = {
	.proc_open = recorder_open,
	.proc_read = recorder_read,
	.proc_write = recorder_write,
	.proc_lseek = default_llseek,
	.proc_release = recorder_release,
};

int lab_recorder_register(const struct lab_recorder_type *type)
{
	return proc_create_data(type->name, 0600, NULL, &recorder_operations, (void *)type) ? 0 : -ENOMEM;
}
