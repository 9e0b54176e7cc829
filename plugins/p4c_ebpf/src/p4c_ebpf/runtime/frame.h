/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The packet as the kernel has it, made to look like a frame on the wire, and given more or fewer
 * bytes of headers.
 *
 * The kernel takes the outermost VLAN tag off before tc sees a packet; frame_untag() puts it back
 * among the bytes.  There is no helper that takes bytes off the front of any packet:
 * bpf_skb_adjust_room() does it behind the MAC header, for what the kernel believes to be IP, and
 * if at least an IPv6 header's length is left.  frame_resize() meets these conditions first.
 *
 * The file that includes this has struct packet with `headers`, the bytes at the front of the packet
 * that the program's headers take up, and `mac`, the kernel's idea of the MAC header's length.
 */
#ifndef P4C_EBPF_FRAME_H
#define P4C_EBPF_FRAME_H

#define FRAME_MAC 14
#define FRAME_TAG 4
#define FRAME_TAGS 4			/* nested tags that are put back */
#define FRAME_ROOM 64			/* more than any IP header's minimum */
#define FRAME_CARRY 128

struct carry {
	u64 words[FRAME_CARRY / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct carry);
} carry SEC(".maps");

/* Invert the lowest bit of a byte; 0 or negative. */
static __noinline int frame_flip(struct __sk_buff *skb, u32 at)
{
	u8 byte;

	if (bpf_skb_load_bytes(skb, at, &byte, 1))
		return -1;
	byte ^= 1;
	return bpf_skb_store_bytes(skb, at, &byte, 1, 0);
}

/* Put stripped VLAN tags back; 0 or negative. */
static __noinline int frame_untag(struct __sk_buff *skb, struct packet *p)
{
	struct { __be16 proto, tci; } tags[FRAME_TAGS];
	u16 macs[6];
	u32 n = 0;

	/* popping one moves the next from the bytes to where it can be popped */
	for (u32 i = 0; i < FRAME_TAGS; i++) {
		if (!skb->vlan_present)
			break;
		tags[i].proto = skb->vlan_proto;
		tags[i].tci = be16(skb->vlan_tci);
		n = i + 1;
		if (bpf_skb_vlan_pop(skb))
			return -1;
	}
	if (bpf_skb_change_head(skb, n * FRAME_TAG, 0))
		return -1;
	p->mac += n * FRAME_TAG;
	if (bpf_skb_load_bytes(skb, n * FRAME_TAG, macs, sizeof(macs)) ||
	    bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
		return -1;
	for (u32 i = 0; i < FRAME_TAGS; i++) {
		if (i >= n)
			break;
		if (bpf_skb_store_bytes(skb, sizeof(macs) + i * FRAME_TAG, &tags[i], FRAME_TAG, 0))
			return -1;
	}
	return 0;
}

/*
 * Make the kernel believe that the packet is IPv4, whatever its bytes say: pushing two tags writes
 * one into the bytes, and popping both takes the protocol from behind it.
 */
static __noinline int frame_pose_as_ip(struct __sk_buff *skb)
{
	__be16 ip = be16(ETH_IP), was;

	if (bpf_skb_load_bytes(skb, FRAME_MAC - 2, &was, sizeof(was)) ||
	    bpf_skb_vlan_push(skb, be16(ETH_VLAN), 1) || bpf_skb_vlan_push(skb, be16(ETH_VLAN), 2) ||
	    bpf_skb_store_bytes(skb, FRAME_MAC + FRAME_TAG - 2, &ip, sizeof(ip), 0) ||
	    bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb))
		return -1;
	return bpf_skb_store_bytes(skb, FRAME_MAC - 2, &was, sizeof(was), 0);
}

static __always_inline int frame_is_ip(struct __sk_buff *skb)
{
	return skb->protocol == be16(ETH_IP) || skb->protocol == be16(ETH_IP6);
}

/* `by` more bytes of headers after the first `have`, put behind the kernel's MAC header; 0 or negative. */
static __noinline int frame_grow_behind_mac(struct __sk_buff *skb, u32 have, u32 mac, u32 by)
{
	u32 zero = 0, moved = mac > have ? mac - have : 0;
	struct carry *c = bpf_map_lookup_elem(&carry, &zero);

	if (!c || moved > FRAME_CARRY || by > FRAME_CARRY)
		return -1;
	if (!frame_is_ip(skb) && frame_pose_as_ip(skb))
		return -1;
	if (moved && bpf_skb_load_bytes(skb, have, c->words, at_most(moved, FRAME_CARRY)))
		return -1;
	if (bpf_skb_adjust_room(skb, by, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return -1;
	return moved ? bpf_skb_store_bytes(skb, have + by, c->words, at_most(moved, FRAME_CARRY), 0) : 0;
}

/*
 * Give the packet `want` bytes of headers instead of p->headers; the payload stays as it is, the
 * headers' bytes are undefined.  What adjust_room would take of the payload, because the MAC
 * header is longer than the headers that are left, is carried over.
 *
 * Bytes put before a packet lengthen what the kernel takes for its MAC header, and a packet can't be
 * cut to less than that; only frames far below Ethernet's minimum get there.  So they are put there
 * once: a packet of several copies that grows again grows behind its MAC header.
 */
static __noinline int frame_resize(struct __sk_buff *skb, struct packet *p, u32 want)
{
	u32 zero = 0, have = p->headers, less, more = 0, len = skb->len, moved = 0;
	struct carry *c;

	if (want > have) {
		if (p->mac > FRAME_MAC)
			return frame_grow_behind_mac(skb, have, p->mac, want - have);
		if (bpf_skb_change_head(skb, want - have, 0))
			return -1;
		p->mac += want - have;
		return 0;
	}
	less = have - want;
	c = bpf_map_lookup_elem(&carry, &zero);
	if (!c)
		return -1;
	if (!frame_is_ip(skb)) {
		if (frame_pose_as_ip(skb))
			return -1;
		if (p->mac < FRAME_MAC)		/* popping a tag sees to that */
			p->mac = FRAME_MAC;
	}
	if (len - less < p->mac)	/* refused here, where the packet is still whole for the next copy */
		return -1;
	if (len < p->mac + less + FRAME_ROOM) {
		more = FRAME_ROOM + p->mac + less;
		if (bpf_skb_change_tail(skb, len + more, 0))
			return -1;
	}
	if (p->mac + less > have) {
		moved = p->mac + less - have;
		if (moved > FRAME_CARRY)
			return -1;
	}
	if (moved && bpf_skb_load_bytes(skb, have, c->words, at_most(moved, FRAME_CARRY)))
		return -1;
	if (bpf_skb_adjust_room(skb, -(long)less, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	if (moved && bpf_skb_store_bytes(skb, want, c->words, at_most(moved, FRAME_CARRY), 0))
		return -1;
	return more ? bpf_skb_change_tail(skb, len - less, 0) : 0;
}

#endif
