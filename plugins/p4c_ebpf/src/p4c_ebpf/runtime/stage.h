/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two programs at the ingress of a port: the first says what becomes of a packet, the second forwards it.
 *
 * The first lets the kernel go on with the next filter (TC_ACT_UNSPEC) and leaves here what the second is to know:
 * how often the packet is sent, how much later than its port would send it, and its telemetry record, which the second
 * completes.  A packet that the first keeps until another one has been sent lies in `kept`, as the first left it.
 * Both programs have the same maps `handed` and `kept`.
 *
 * The file that includes this has the helpers.
 */
#ifndef P4C_EBPF_STAGE_H
#define P4C_EBPF_STAGE_H

#define STAGE_RECORD 128
#define STAGE_BYTES 16384		/* a power of two */
#define STAGE_COPY 64			/* the place of a packet that is sent again; those below are the first program's */

struct handed {
	u64 hold_ns;
	u32 times;			/* 0: nothing was handed over */
	u32 then;			/* what follows this packet: its place in `kept`, and 1; 0: nothing does */
	u8 record[STAGE_RECORD];
};

struct kept {
	u32 bytes;			/* of the frame; 0: the place is free */
	u32 spare;
	struct handed handed;
	u8 frame[STAGE_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct handed);
} handed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STAGE_COPY + 1);
	__type(key, u32);
	__type(value, struct kept);
} kept SEC(".maps");

/* Keep the packet at a place, whatever lies there; 0, or negative: it is too long. */
static __noinline int stage_keep(struct __sk_buff *skb, u32 place)
{
	u32 zero = 0, bytes = skb->len;
	struct kept *k = bpf_map_lookup_elem(&kept, &place);
	struct handed *h = bpf_map_lookup_elem(&handed, &zero);

	if (!k || !h || !bytes || bytes > STAGE_BYTES)
		return -1;
	if (bpf_skb_load_bytes(skb, 0, k->frame, at_most(bytes, STAGE_BYTES)))
		return -1;
	__builtin_memcpy(&k->handed, h, sizeof(*h));
	k->bytes = bytes;
	return 0;
}

/* Let the packet be the one that is kept at a place; 0, or negative if there is none.  waits: it has a departure time. */
static __noinline int stage_take(struct __sk_buff *skb, u32 place, u32 waits)
{
	u32 zero = 0, bytes;
	struct kept *k = bpf_map_lookup_elem(&kept, &place);
	struct handed *h = bpf_map_lookup_elem(&handed, &zero);

	if (!k || !h || !k->bytes || k->bytes > STAGE_BYTES)
		return -1;
	bytes = k->bytes;
	k->bytes = 0;
	if (skb->len != bytes && bpf_skb_change_tail(skb, bytes, 0))
		return -1;
	if (bpf_skb_store_bytes(skb, 0, k->frame, at_most(bytes, STAGE_BYTES), 0))
		return -1;
	if (waits)
		bpf_skb_set_tstamp(skb, 0, BPF_SKB_TSTAMP_UNSPEC);
	__builtin_memcpy(h, &k->handed, sizeof(*h));
	return 0;
}

/* The ECN bits of an IP packet behind an Ethernet header without tags; above 3: of another one. */
static __noinline u32 stage_ecn(struct __sk_buff *skb)
{
	__be16 type;
	u8 class[2];

	if (bpf_skb_load_bytes(skb, 12, &type, sizeof(type)) || bpf_skb_load_bytes(skb, 14, class, sizeof(class)))
		return ~0U;
	return type == be16(ETH_IP) ? class[1] & 3 : type == be16(ETH_IP6) ? (class[1] >> 4) & 3 : ~0U;
}

#endif
