/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A record a packet, for user space; translate.py writes its struct: a fixed head, then what the
 * program taps.
 *
 * Records lie in the ring buffer `telemetry`.  Its reader is woken when the ring is half full and
 * not before: waking a process is what costs.  A record that does not fit is counted in
 * telemetry_lost[0].  telemetry_on[0] switches all of it.
 *
 * The file that includes this has SEC(), __uint(), __type(), __always_inline, the types of
 * linux/types.h and the helpers' declarations.
 */
#ifndef P4C_EBPF_TELEMETRY_H
#define P4C_EBPF_TELEMETRY_H

#define TELEMETRY_RING_BYTES (1U << 24)

enum telemetry_verdict {
	TELEMETRY_SENT,
	TELEMETRY_DROPPED,		/* by the program */
	TELEMETRY_FULL,			/* by the port's full buffer */
	TELEMETRY_ASTRAY,		/* no such port or group, or its headers could not be written */
	TELEMETRY_LINK,			/* by the port's link: it is down, never sends it, or takes none so large */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TELEMETRY_RING_BYTES);
} telemetry SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} telemetry_on SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} telemetry_lost SEC(".maps");

static __always_inline int telemetry_wanted(void)
{
	__u32 key = 0;
	__u32 *on = bpf_map_lookup_elem(&telemetry_on, &key);

	return on && *on;
}

/* Space for a record of constant size, or NULL: then it is counted as lost. */
static __always_inline void *telemetry_reserve(__u32 bytes)
{
	void *record = bpf_ringbuf_reserve(&telemetry, bytes, 0);
	__u32 key = 0;
	__u64 *lost;

	if (record)
		return record;
	lost = bpf_map_lookup_elem(&telemetry_lost, &key);
	if (lost)
		__sync_fetch_and_add(lost, 1);
	return NULL;
}

static __always_inline void telemetry_submit(void *record)
{
	__u64 waiting = bpf_ringbuf_query(&telemetry, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_submit(record, waiting > TELEMETRY_RING_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

#endif
