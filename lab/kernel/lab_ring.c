// SPDX-License-Identifier: GPL-2.0
/*
 * The records that BPF programs put into a ring buffer, in a file of the machine.
 *
 * /proc/testctl_ring (lab_host_file.h), words "MAP": the descriptor of a ring buffer that the
 * writer has open, and nobody else records.  While this records, programs that run with softirqs off, as filters of
 * devices do, get the file's next bytes instead of the ring's: what they reserve and submit
 * follows one another in the file, without the ring's headers, and nobody is woken.  Counters:
 * records, those submitted; missed, those of other programs, which went into the ring.  Where the
 * file could not be written, no space is given, as by a full ring.  What bpf_ringbuf_output() and
 * dynamic pointers put into the ring stays there.
 *
 * The verifier and the compiler see these functions in the place of the kernel's (wraps.txt).
 */
#include <linux/bottom_half.h>
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/filter.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/list.h>
#include <linux/preempt.h>

#include "lab_host_file.h"

struct ring {
	struct lab_recorder recorder;
	struct list_head in_all;
	struct bpf_map *map;	/* (owned) */
	u64 records;
	u64 missed;
};

/* All with softirqs off. */
static LIST_HEAD(all);
static struct {
	struct ring *ring;
	void *space;	/* NULL: none is reserved */
	u32 bytes;
} reserved;

extern const struct bpf_func_proto __real_bpf_ringbuf_reserve_proto;
extern const struct bpf_func_proto __real_bpf_ringbuf_submit_proto;
extern const struct bpf_func_proto __real_bpf_ringbuf_discard_proto;
struct bpf_func_proto __wrap_bpf_ringbuf_reserve_proto;
struct bpf_func_proto __wrap_bpf_ringbuf_submit_proto;
struct bpf_func_proto __wrap_bpf_ringbuf_discard_proto;

static struct ring *recorder_of(const struct bpf_map *map)
{
	struct ring *ring;

	list_for_each_entry(ring, &all, in_all)
		if (ring->map == map)
			return ring;
	return NULL;
}

/* Whether the caller may write so many bytes to a recorder's file. */
static bool may_write(u64 bytes)
{
	return in_softirq() && !in_hardirq() && !reserved.space && bytes && bytes <= LAB_FILE_BYTES;
}

BPF_CALL_3(lab_reserve, struct bpf_map *, map, u64, bytes, u64, flags)
{
	struct ring *ring = recorder_of(map);

	if (ring && !may_write(bytes)) {
		ring->missed++;
		ring = NULL;
	}
	if (!ring)
		return __real_bpf_ringbuf_reserve_proto.func((u64)map, bytes, flags, 0, 0);
	reserved.space = lab_file_space(&ring->recorder.file, bytes);
	reserved.ring = ring;
	reserved.bytes = bytes;
	return (u64)reserved.space;
}

BPF_CALL_2(lab_submit, void *, sample, u64, flags)
{
	if (sample != reserved.space)
		return __real_bpf_ringbuf_submit_proto.func((u64)sample, flags, 0, 0, 0);
	lab_file_put(&reserved.ring->recorder.file, reserved.bytes);
	reserved.ring->records++;
	reserved.space = NULL;
	return 0;
}

BPF_CALL_2(lab_discard, void *, sample, u64, flags)
{
	if (sample != reserved.space)
		return __real_bpf_ringbuf_discard_proto.func((u64)sample, flags, 0, 0, 0);
	reserved.space = NULL;
	return 0;
}

static int ring_begin(struct lab_recorder *recorder, char *words)
{
	struct ring *ring = container_of(recorder, struct ring, recorder);
	struct bpf_map *map;
	int error = 0;
	u32 fd;

	if (kstrtou32(words, 10, &fd))
		return -EINVAL;
	map = bpf_map_get(fd);
	if (IS_ERR(map))
		return PTR_ERR(map);
	if (map->map_type != BPF_MAP_TYPE_RINGBUF) {
		bpf_map_put(map);
		return -EMEDIUMTYPE;
	}
	ring->map = map;
	ring->records = 0;
	ring->missed = 0;
	local_bh_disable();
	if (recorder_of(map))
		error = -EBUSY;
	else
		list_add(&ring->in_all, &all);
	local_bh_enable();
	if (error)
		bpf_map_put(map);
	return error;
}

static void ring_end(struct lab_recorder *recorder)
{
	struct ring *ring = container_of(recorder, struct ring, recorder);

	local_bh_disable();
	list_del(&ring->in_all);
	local_bh_enable();
	bpf_map_put(ring->map);
}

static int ring_tell(const struct lab_recorder *recorder, char *text, u32 size)
{
	const struct ring *ring = container_of(recorder, struct ring, recorder);

	return scnprintf(text, size, "records=%llu\nmissed=%llu\n", ring->records, ring->missed);
}

static const struct lab_recorder_type ring_type = {
	.name = "testctl_ring",
	.bytes = sizeof(struct ring),
	.begin = ring_begin,
	.end = ring_end,
	.tell = ring_tell,
};

static int __init ring_init(void)
{
	__wrap_bpf_ringbuf_reserve_proto = __real_bpf_ringbuf_reserve_proto;
	__wrap_bpf_ringbuf_reserve_proto.func = lab_reserve;
	__wrap_bpf_ringbuf_submit_proto = __real_bpf_ringbuf_submit_proto;
	__wrap_bpf_ringbuf_submit_proto.func = lab_submit;
	__wrap_bpf_ringbuf_discard_proto = __real_bpf_ringbuf_discard_proto;
	__wrap_bpf_ringbuf_discard_proto.func = lab_discard;
	return lab_recorder_register(&ring_type);
}
device_initcall(ring_init);
