/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The egress port of a switch as an ideal link: serialise at a rate, then propagate.
 *
 * The queue is kept as what is not serialised yet, in nanobits (1e-9 bit), so that a nanosecond at
 * `rate_bps` takes off exactly `rate_bps` of them and no time is ever rounded but the one handed
 * out:
 *
 *	backlog = max(0, backlog - (now - since) * rate)
 *	depth   = ceil(backlog / 8e9)				bytes that wait, this packet not among them
 *	drop if depth + size > buffer				size = packet + framing
 *	backlog = backlog + size * 8e9
 *	at      = now + ceil(backlog / rate) + delay
 *
 * 64 bits hold it: the queue never exceeds PORT_MOST_BYTES, and elapsed * rate is only computed
 * where it is at most the backlog.  A port without a rate has no queue, and its buffer no effect.
 *
 * The file that includes this has SEC(), __uint(), __type(), __always_inline, the types
 * of linux/types.h, and bpf_spin_lock() and bpf_spin_unlock().  The order of the members of struct
 * port is read and written by switch/ebpf_ports.py.
 */
#ifndef P4C_EBPF_PORT_MODEL_H
#define P4C_EBPF_PORT_MODEL_H

#define PORTS 512			/* P4 ports 1 to 510; 511 is v1model's drop port */
#define PORT_MOST_BYTES (1ULL << 31)
#define PORT_NANOBITS_PER_BYTE 8000000000ULL

struct port {
	struct bpf_spin_lock lock;	/* over since_ns and backlog */
	__u32 ifindex;			/* 0: no such port */
	__u64 rate_bps;			/* 0: infinite */
	__u64 delay_ns;
	__u64 buffer_bytes;		/* 0: no limit but PORT_MOST_BYTES */
	__u64 framing_bytes;		/* added to every packet's size on the wire */
	__u64 since_ns;			/* the time `backlog` is of */
	__u64 backlog;			/* nanobits */
	__u64 sent_packets;
	__u64 sent_bytes;		/* without framing */
	__u64 dropped_packets;		/* by the full buffer, or by the link */
	__u64 dropped_bytes;
	__u64 changes;			/* enum port_changes */
};

/* Whether the port's link changes (link_model.h), and whether packets may overtake each other there. */
enum port_changes { PORT_STEADY, PORT_CHANGES, PORT_REORDERS };

/* Why the port did not send a packet. */
enum { PORT_FULL = 1, PORT_DOWN, PORT_LARGE };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

/* ifindex to P4 port */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__type(value, __u32);
} port_of SEC(".maps");

struct departure {
	__u64 at_ns;			/* when the packet reaches the neighbour; `now` if neither rate nor delay */
	__u32 depth_bytes;		/* what it found waiting */
	__u32 dropped;			/* 0, PORT_FULL, PORT_DOWN, or PORT_LARGE: its sender gets a message */
	__u32 largest;			/* of PORT_LARGE: bytes from the IP header on that the link takes */
	__u32 spare;
#ifdef PORT_BEGINS
	__u64 begins_ns;		/* when it begins to be sent */
#endif
};

/*
 * A packet arrives at the port.  `now_ns` may lie a little before that of a packet another CPU
 * brought: it then counts as having come together with that one.
 */
static __always_inline struct departure port_enqueue(struct port *p, __u64 now_ns, __u32 packet_bytes)
{
	struct departure d = { .at_ns = now_ns + p->delay_ns };
	__u64 rate = p->rate_bps;
	__u64 size, limit, elapsed, backlog;

#ifdef PORT_BEGINS
	d.begins_ns = now_ns;
#endif
	if (!rate) {
		__sync_fetch_and_add(&p->sent_packets, 1);
		__sync_fetch_and_add(&p->sent_bytes, packet_bytes);
		return d;
	}
	size = packet_bytes + p->framing_bytes;
	limit = p->buffer_bytes;
	if (!limit || limit > PORT_MOST_BYTES)
		limit = PORT_MOST_BYTES;

	bpf_spin_lock(&p->lock);
	backlog = p->backlog;
	if (now_ns > p->since_ns) {
		elapsed = now_ns - p->since_ns;
		p->since_ns = now_ns;
		if (backlog && elapsed <= backlog / rate)
			backlog -= elapsed * rate;
		else
			backlog = 0;
	}
	d.depth_bytes = (backlog + PORT_NANOBITS_PER_BYTE - 1) / PORT_NANOBITS_PER_BYTE;
	if (d.depth_bytes + size > limit) {
		d.dropped = PORT_FULL;
		p->dropped_packets += 1;
		p->dropped_bytes += packet_bytes;
	} else {
#ifdef PORT_BEGINS
		d.begins_ns = p->since_ns + (backlog + rate - 1) / rate;
#endif
		backlog += size * PORT_NANOBITS_PER_BYTE;
		d.at_ns = p->since_ns + (backlog + rate - 1) / rate + p->delay_ns;
		p->sent_packets += 1;
		p->sent_bytes += packet_bytes;
	}
	p->backlog = backlog;
	bpf_spin_unlock(&p->lock);
	return d;
}

#endif
