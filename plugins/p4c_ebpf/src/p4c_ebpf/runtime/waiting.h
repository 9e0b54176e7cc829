/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How many packets wait at a port, as BMv2 counts them: without the one that is being sent.
 *
 * A port knows its queue in bytes.  Of the last packets that were let into it, the numbers of bytes that were let in up
 * to the end of each are kept: those above what has been sent belong to packets that are not sent yet.
 *
 * The loader gives the map an entry for each port.  The file that includes this has the helpers.
 */
#ifndef P4C_EBPF_WAITING_H
#define P4C_EBPF_WAITING_H

#define WAITING_BITS 12
#define WAITING (1U << WAITING_BITS)	/* packets; of a longer queue two less are counted */

struct waiting {
	u64 total;			/* bytes that were let in */
	u32 packets;
	u32 none;			/* 0, which the verifier can't know: it would look at each way through the loop */
	u64 upto[WAITING];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct waiting);
} waiting SEC(".maps");

/* The number that a packet of `bytes` finds, where it finds `depth` bytes; in: it is let into the queue. */
static __noinline u32 waiting_packets(u32 port, u64 depth, u64 bytes, u32 in)
{
	struct waiting *w = bpf_map_lookup_elem(&waiting, &port);
	u64 sent;
	u32 last, few;

	if (!w)
		return 0;
	sent = w->total - depth;
	last = w->packets;
	few = w->none;
	/* the greatest number of last packets that all end above what was sent */
	for (u32 step = WAITING >> 1; step; step >>= 1) {
		u32 at = last - (few + step);

		if (few + step <= last && w->upto[at & (WAITING - 1)] > sent)
			few += step;
	}
	if (in) {
		w->total += bytes;
		w->upto[last & (WAITING - 1)] = w->total;
		w->packets = last + 1;
	}
	return few ? few - 1 : 0;
}

#endif
