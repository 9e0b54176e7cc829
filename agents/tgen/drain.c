// SPDX-License-Identifier: Apache-2.0
/*
 * Writes what lies in a BPF ring buffer to a file: records of one size, one after
 * another.
 *
 * The kernel's side decides when to wake this process (p4c_ebpf/runtime/telemetry.h: when
 * the ring is half full); what is in it at the end is taken when SIGTERM comes.  No clock
 * is read.
 *
 * Sources: Documentation/bpf/ringbuf.rst; include/uapi/linux/bpf.h: one page with the
 * consumer's position, one with the producer's, then the data, mapped twice in a row; a
 * record is a header of u32 length (with two flags) and u32 page offset, then its bytes,
 * padded to 8.
 */
#include <endian.h>
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tgen.h"

struct drain {
	const char *out;
	uint64_t map_id;
	uint64_t record_bytes;
	int map;    /* owned */
	FILE *file; /* owned */
	uint64_t ring_bytes;
	uint64_t *taken;       /* the consumer's position, which we write */
	const uint64_t *given; /* the producer's */
	const uint8_t *data;
	char error[ERROR_SIZE];
};

static bool parse_key(struct drain *d, const char *key, const char *value)
{
	if (!strcmp(key, "out"))
		d->out = value;
	else if (!strcmp(key, "map_id"))
		return parse_u64(value, 1, UINT32_MAX, &d->map_id);
	else
		return !strcmp(key, "record_bytes") &&
		       parse_u64(value, 8, 4096, &d->record_bytes);
	return true;
}

static bool parse(struct drain *d, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = 0;
		if (!value || !parse_key(d, argv[i], value))
			fail(d->error,
			     "want out, map_id or record_bytes (8 to 4096); got '%s=%s'",
			     argv[i], value ? value : "");
	}
	if (!d->out || !d->map_id || !d->record_bytes)
		fail(d->error, "%s: is missing",
		     !d->out	  ? "out"
		     : !d->map_id ? "map_id"
				  : "record_bytes");
	return !d->error[0];
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static bool open_map(struct drain *d)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = { .map_id = (uint32_t)d->map_id };

	d->map = (int)bpf(BPF_MAP_GET_FD_BY_ID, &attr);
	if (d->map < 0) {
		fail_errno(d->error, errno, "can't open BPF map %u",
			   (unsigned int)d->map_id);
		return false;
	}
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)d->map;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		fail_errno(d->error, errno, "can't look at BPF map %u",
			   (unsigned int)d->map_id);
	else if (info.type != BPF_MAP_TYPE_RINGBUF)
		fail(d->error, "BPF map %u: want a ring buffer; got type %u",
		     (unsigned int)d->map_id, info.type);
	d->ring_bytes = info.max_entries;
	return !d->error[0];
}

static bool map_ring(struct drain *d)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t length = (size_t)page + 2 * d->ring_bytes;
	void *ours =
		mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, d->map, 0);
	void *theirs = ours == MAP_FAILED
			       ? MAP_FAILED
			       : mmap(NULL, length, PROT_READ, MAP_SHARED, d->map, page);

	if (theirs == MAP_FAILED) {
		fail_errno(d->error, errno, "can't map the ring");
		return false;
	}
	d->taken = ours;
	d->given = theirs;
	d->data = (const uint8_t *)theirs + page;
	return true;
}

/* Everything that is complete, in order; a record still being written ends it. */
static void take(struct drain *d)
{
	uint64_t at = __atomic_load_n(d->taken, __ATOMIC_ACQUIRE);

	while (!d->error[0] && at < __atomic_load_n(d->given, __ATOMIC_ACQUIRE)) {
		const uint8_t *record = d->data + (at & (d->ring_bytes - 1));
		uint32_t head =
			__atomic_load_n((const uint32_t *)record, __ATOMIC_ACQUIRE);
		uint32_t length =
			head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			return;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			if (length != d->record_bytes)
				fail(d->error, "want records of %u bytes; got one of %u",
				     (unsigned int)d->record_bytes, length);
			else if (fwrite(record + BPF_RINGBUF_HDR_SZ, length, 1,
					d->file) != 1)
				fail_errno(d->error, errno, "can't write %s", d->out);
		}
		at += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		__atomic_store_n(d->taken, at, __ATOMIC_RELEASE);
	}
}

/*
 * Until a signal of the set comes.  Edges of the map count, not its level: else every
 * packet that comes while we look would wake us again.
 */
static void run(struct drain *d, const sigset_t *set)
{
	int signals = signalfd(-1, set, SFD_CLOEXEC);
	int poller = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event stop = { .events = EPOLLIN, .data.fd = signals };
	struct epoll_event full = { .events = EPOLLIN | EPOLLET, .data.fd = d->map };
	struct epoll_event came = full;

	if (signals < 0 || poller < 0 ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, signals, &stop) ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, d->map, &full))
		fail_errno(d->error, errno, "can't wait for the ring");
	while (!d->error[0] && came.data.fd == d->map) {
		if (epoll_wait(poller, &came, 1, -1) < 0 && errno != EINTR)
			fail_errno(d->error, errno, "can't wait for the ring");
		take(d);
	}
	if (poller >= 0)
		close(poller);
	if (signals >= 0)
		close(signals);
}

int drain_main(int argc, char **argv)
{
	static struct drain d = { .map = -1 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!parse(&d, argc, argv)) {
		fprintf(stderr, "tgen drain: %s\n", d.error);
		return EXIT_USAGE;
	}
	if (open_map(&d) && map_ring(&d)) {
		d.file = open_whole(d.out);
		if (!d.file)
			fail_errno(d.error, errno, "can't write %s", d.out);
	}
	if (d.file) {
		setvbuf(d.file, NULL, _IOFBF, FILE_BUFFER);
		if (puts("ready") < 0 || fflush(stdout))
			fail_errno(d.error, errno, "can't say ready");
		run(&d, &set);
		if (close_whole(d.file, d.out) < 0)
			fail_errno(d.error, errno, "can't write %s", d.out);
	}
	if (d.map >= 0)
		close(d.map);
	if (d.error[0])
		fprintf(stderr, "tgen drain: %s\n", d.error);
	return d.error[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}
