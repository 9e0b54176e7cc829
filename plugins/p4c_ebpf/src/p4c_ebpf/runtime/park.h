/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets that are kept until another one has been sent.
 *
 * No helper holds a packet back without a time, so its bytes and what the program knows of it are written
 * down, and it is sent in the packet that releases it.  A packet that is longer than PARK_BYTES is not kept.
 *
 * The file that includes this has struct packet and PACKET_BYTES, a multiple of 8.
 */
#ifndef P4C_EBPF_PARK_H
#define P4C_EBPF_PARK_H

#define PARK_KEEP 0x40
#define PARK_TAKE 0x80
#define PARK_PLACES 64
#define PARK_BYTES 16384		/* a power of two */
#define PARK_WORDS ((PACKET_BYTES + 7) / 8)

struct parked {
	u32 bytes;			/* of the frame; 0: the place is free */
	u32 spare;
	u64 known[PARK_WORDS];		/* struct packet up to its headers */
	u8 frame[PARK_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PARK_PLACES);
	__type(key, u32);
	__type(value, struct parked);
} parked SEC(".maps");

/* Keep the packet at a place, whatever lies there; 0 or negative. */
static __noinline int park_keep(struct __sk_buff *skb, struct packet *p, u32 place)
{
	struct parked *k = bpf_map_lookup_elem(&parked, &place);
	u32 bytes = skb->len;

	if (!k || !bytes || bytes > PARK_BYTES)
		return -1;
	if (bpf_skb_load_bytes(skb, 0, k->frame, at_most(bytes, PARK_BYTES)))
		return -1;
	for (u32 i = 0; i < PARK_WORDS; i++)
		k->known[i] = ((volatile u64 *)p)[i];
	k->bytes = bytes;
	return 0;
}

/* Let the packet be the one that is kept at a place; 0, or negative if there is none. */
static __noinline int park_take(struct __sk_buff *skb, struct packet *p, u32 place)
{
	struct parked *k = bpf_map_lookup_elem(&parked, &place);
	u32 bytes, mac = p->mac;
	u64 now_ns = p->now_ns;

	if (!k || !k->bytes || k->bytes > PARK_BYTES)
		return -1;
	bytes = k->bytes;
	k->bytes = 0;
	if (skb->len != bytes && bpf_skb_change_tail(skb, bytes, 0))
		return -1;
	if (bpf_skb_store_bytes(skb, 0, k->frame, at_most(bytes, PARK_BYTES), 0))
		return -1;
	if (p->waits)
		bpf_skb_set_tstamp(skb, 0, BPF_SKB_TSTAMP_UNSPEC);
	for (u32 i = 0; i < PARK_WORDS; i++)
		((volatile u64 *)p)[i] = k->known[i];
	p->mac = mac;
	p->now_ns = now_ns;
	return 0;
}

#endif
