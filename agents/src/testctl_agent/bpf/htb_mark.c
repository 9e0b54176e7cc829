// SPDX-License-Identifier: GPL-2.0
/*
 * The rate limiter's marking where no qdisc does it: three programs around HTB's queue.
 *
 * sent      tc clsact egress: a packet enters HTB; count its bytes, or drop it at the limit; set CE
 *           if data is to be marked and the queue that it finds is at the threshold
 * left      socket filter of an AF_PACKET socket: a packet leaves HTB; take its bytes off
 * returned  tc clsact ingress: if ACKs are to be marked, set ECE on one that arrives while the
 *           queue is at the threshold
 *
 * `sent` counts wire_len, which is qdisc_skb_cb()->pkt_len: the bytes of every packet a GSO
 * segment will become, Ethernet headers included.  `left` sees those packets after the kernel
 * split them, or the segment itself if the device splits, and counts the same.  So the sum is 0
 * whenever the queue is empty.  `left` accepts nothing: no packet is queued to the socket.
 *
 * A SYN is never marked: ECE means something else there (RFC 3168, 6.1.1).
 * Runs in the kernel's interpreter: one plain array, no kfuncs.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>

#define SECTION(name) __attribute__((section(name), used))
#define HTONS(x) __builtin_bswap16(x)

#define IPV6_HEADER_BYTES 40
#define TCP_FLAGS_AT 13
#define TCP_CHECKSUM_AT 16
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_ECE 0x40

/* keep the order: bpf/htb_mark.py reads and writes it */
struct queue {
	__u64 bytes;
	__u64 threshold_bytes;
	__u64 limit_bytes;
	__u64 drops;
	__u64 marks;
	__u64 marks_data;	/* 0: ACKs */
};

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	__u32 *key;
	struct queue *value;
	int (*max_entries)[1];
} queues SECTION(".maps");

char _license[] SECTION("license") = "GPL";

static void *(*lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*load)(const void *skb, __u32 at, void *to, __u32 bytes) = (void *)BPF_FUNC_skb_load_bytes;
static long (*store)(void *skb, __u32 at, const void *from, __u32 bytes, __u64 flags) =
	(void *)BPF_FUNC_skb_store_bytes;
static long (*set_ce)(void *skb) = (void *)BPF_FUNC_skb_ecn_set_ce;
static long (*mend_checksum)(void *skb, __u32 at, __u64 from, __u64 to, __u64 bytes) =
	(void *)BPF_FUNC_l4_csum_replace;

static __inline struct queue *the_queue(void)
{
	__u32 key = 0;

	return lookup(&queues, &key);
}

/* Where the TCP header begins, 0 if this is not TCP or not its first fragment. */
static __inline __u32 tcp_at(struct __sk_buff *skb)
{
	__u8 byte = 0;
	__u16 fragment = 0;

	if (skb->protocol == HTONS(ETH_P_IP)) {
		if (load(skb, ETH_HLEN + 9, &byte, 1) || byte != IPPROTO_TCP)
			return 0;
		if (load(skb, ETH_HLEN + 6, &fragment, 2) || fragment & HTONS(0x1fff))
			return 0;
		if (load(skb, ETH_HLEN, &byte, 1))
			return 0;
		return ETH_HLEN + (byte & 15) * 4;
	}
	if (skb->protocol == HTONS(ETH_P_IPV6)) {
		if (load(skb, ETH_HLEN + 6, &byte, 1) || byte != IPPROTO_TCP)
			return 0;
		return ETH_HLEN + IPV6_HEADER_BYTES;
	}
	return 0;
}

SECTION("tc") int sent(struct __sk_buff *skb)
{
	struct queue *queue = the_queue();
	__u64 bytes = skb->wire_len;

	if (!queue)
		return TC_ACT_UNSPEC;
	if (queue->bytes + bytes > queue->limit_bytes) {
		__sync_fetch_and_add(&queue->drops, 1);
		return TC_ACT_SHOT;
	}
	if (queue->marks_data && queue->bytes >= queue->threshold_bytes && set_ce(skb))
		__sync_fetch_and_add(&queue->marks, 1);
	__sync_fetch_and_add(&queue->bytes, bytes);
	return TC_ACT_UNSPEC;
}

SECTION("socket") int left(struct __sk_buff *skb)
{
	struct queue *queue;
	__u64 bytes = skb->len;
	__u32 segments = skb->gso_segs;
	__u8 offset = 0;
	__u32 at;

	if (skb->pkt_type != PACKET_OUTGOING)
		return 0;
	queue = the_queue();
	if (!queue)
		return 0;
	if (segments > 1) {
		at = tcp_at(skb);
		if (at && !load(skb, at + 12, &offset, 1))
			bytes += (__u64)(segments - 1) * (at + (offset >> 4) * 4);
	}
	__sync_fetch_and_add(&queue->bytes, -bytes);
	return 0;
}

SECTION("tc") int returned(struct __sk_buff *skb)
{
	struct queue *queue = the_queue();
	__u8 flags[2];
	__u16 before, after;
	__u32 at;

	if (!queue || queue->marks_data || queue->bytes < queue->threshold_bytes)
		return TC_ACT_UNSPEC;
	at = tcp_at(skb);
	if (!at || load(skb, at + TCP_FLAGS_AT - 1, flags, 2))
		return TC_ACT_UNSPEC;
	if ((flags[1] & (TCP_ACK | TCP_SYN | TCP_RST | TCP_ECE)) != TCP_ACK)
		return TC_ACT_UNSPEC;
	before = flags[0] | flags[1] << 8;
	flags[1] |= TCP_ECE;
	after = flags[0] | flags[1] << 8;
	if (mend_checksum(skb, at + TCP_CHECKSUM_AT, before, after, 2))
		return TC_ACT_UNSPEC;
	if (store(skb, at + TCP_FLAGS_AT, &flags[1], 1, 0))
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&queue->marks, 1);
	return TC_ACT_UNSPEC;
}
