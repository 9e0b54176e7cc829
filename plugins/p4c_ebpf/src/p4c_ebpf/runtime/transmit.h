/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where packets come in and go out: at devices, or, built with P4C_EBPF_HARNESS, to tests that run
 * the program by BPF_PROG_TEST_RUN: the ingress port is then the low half of the packet's mark, and
 * what is sent is written to the ring buffer `sent` instead.  The kernel takes no IP packet below its
 * header's length for a run, so a shorter one comes padded, its length in the mark's high half.
 */
#ifndef P4C_EBPF_TRANSMIT_H
#define P4C_EBPF_TRANSMIT_H

#ifdef P4C_EBPF_HARNESS

#define HARNESS_BYTES 4096

struct sent {
	u32 port;
	u32 bytes;
	u8 data[HARNESS_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} sent SEC(".maps");

static __always_inline u32 arrival_port(struct __sk_buff *skb)
{
	u32 mark = skb->mark;

	if (mark >> 16)
		bpf_skb_change_tail(skb, mark >> 16, 0);
	return mark & 0xffff;
}

static __noinline int send_copy(struct __sk_buff *skb, u32 port, u32 ifindex)
{
	struct sent *s = bpf_ringbuf_reserve(&sent, sizeof(*s), 0);
	u32 bytes = skb->len;

	if (!s)
		return -1;
	s->port = port;
	s->bytes = bytes;
	if (bytes > 0 && bytes <= HARNESS_BYTES)
		bpf_skb_load_bytes(skb, 0, s->data, at_most(bytes, HARNESS_BYTES));
	bpf_ringbuf_submit(s, 0);
	return 0;
}

static __always_inline int send_away(struct __sk_buff *skb, u32 port, u32 ifindex, u32 waits)
{
	send_copy(skb, port, ifindex);
	return TC_ACT_OK;
}

#else

/* 0: a device that is no port of the switch */
static __always_inline u32 arrival_port(struct __sk_buff *skb)
{
	u32 ifindex = skb->ifindex;
	u32 *port = bpf_map_lookup_elem(&port_of, &ifindex);

	return port ? *port : 0;
}

static __always_inline int send_copy(struct __sk_buff *skb, u32 port, u32 ifindex)
{
	return bpf_clone_redirect(skb, ifindex, 0);
}

/*
 * A packet that waits at its port may not count as its sender's any more: TCP holds back what it
 * sends while more than a millisecond's worth of its packets lies in queues of its own machine (TCP
 * small queues), and between namespaces a packet keeps its socket.  A clone has none.
 */
static __always_inline int send_away(struct __sk_buff *skb, u32 port, u32 ifindex, u32 waits)
{
	if (waits && skb->sk) {
		bpf_clone_redirect(skb, ifindex, 0);
		return TC_ACT_SHOT;
	}
	return bpf_redirect(ifindex, 0);
}

#endif
#endif
