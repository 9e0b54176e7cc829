/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of the machine that the lab's kernel writes by itself (lab_host_file.c): no process is
 * woken, and the virtual clock does not move.
 *
 * What is put into it is kept in memory until LAB_FILE_BYTES are full, and written when it is
 * closed.  All calls but lab_file_open() come with softirqs off: UML has one processor, and this
 * is the lock.
 */
#ifndef TESTCTL_HOST_FILE_H
#define TESTCTL_HOST_FILE_H

#include <linux/types.h>

#define LAB_FILE_ORDER 6
#define LAB_FILE_BYTES (PAGE_SIZE << LAB_FILE_ORDER)

struct lab_file {
	int fd;		/* of the machine (owned) */
	int error;	/* 0, or what the first write that failed gave, negative */
	u32 used;	/* bytes of the buffer */
	u64 bytes;	/* put into it since it was opened, whether they are written yet or not */
	char *buffer;	/* (owned) LAB_FILE_BYTES; NULL: the file is not open */
};

/* Make or empty the file at an absolute path of the machine; 0 or a negative error. */
int lab_file_open(struct lab_file *file, const char *path);

/* Space for up to `bytes`, at most LAB_FILE_BYTES; NULL: what was before could not be written. */
void *lab_file_space(struct lab_file *file, u32 bytes);

/* The first `bytes` of the last space are part of the file. */
void lab_file_put(struct lab_file *file, u32 bytes);

/* Write what is left.  `error` and `bytes` stay. */
void lab_file_close(struct lab_file *file);

/*
 * A file of /proc, such as /proc/testctl_capture: each that has it open has a recorder of its own.
 *
 * write "WORDS PATH"  begin to record to the machine's file at this absolute path; what the
 *                     words are, the recorder says
 *       "stop"        end, and write what is left; so does the last close
 * read                "name=value" and a newline for each counter: those of the recorder, the
 *                     file's bytes, and error, the errno of the first write to it that failed
 */
struct lab_recorder {
	const struct lab_recorder_type *type;
	struct net *net;	/* of who began it (owned); NULL: it does not record */
	struct lab_file file;
};

struct lab_recorder_type {
	const char *name;	/* of the file of /proc */
	u32 bytes;		/* of the structure that begins with a struct lab_recorder */
	/* 0 or a negative error; net and file are open, and are closed by the caller on an error */
	int (*begin)(struct lab_recorder *recorder, char *words);
	void (*end)(struct lab_recorder *recorder);
	/* "name=value\n"… of the recorder's own counters; the length */
	int (*tell)(const struct lab_recorder *recorder, char *text, u32 size);
};

int lab_recorder_register(const struct lab_recorder_type *type);

#endif
