/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a router answers to a packet that is larger than the next link takes: RFC 792 and RFC 1191 (fragmentation
 * needed and DF set, with the next hop's MTU), RFC 4443 (packet too big).
 *
 * The packet becomes its answer.  A switch has no address, so the answer comes from the packet's destination.  It
 * quotes the IP header and the first bytes behind it, fewer than RFC 1812 and RFC 4443 want: a host needs eight.
 * No answer gets what may be fragmented, a fragment, IPv4 with options, ICMP, or what comes from or goes to a group address.
 *
 * The file that includes this has the helpers and the map `carry`.
 */
#ifndef P4C_EBPF_ICMP_H
#define P4C_EBPF_ICMP_H

#define ICMP_MAC 14
#define ICMP_TAG 4
#define ICMP_HEAD 8
#define ICMP_IP4 20
#define ICMP_IP6 40
#define ICMP_QUOTES4 (ICMP_IP4 + 28)
#define ICMP_QUOTES6 (ICMP_IP6 + 20)
#define ICMP_ANSWER4 (ICMP_IP4 + ICMP_HEAD + ICMP_QUOTES4)
#define ICMP_ANSWER6 (ICMP_IP6 + ICMP_HEAD + ICMP_QUOTES6)
#define ICMP_TTL 64
#define ICMP_CLASS 0xc0			/* network control: RFC 1812, 4.3.2.5 */
#define ICMP_V4 1
#define ICMP_V6 58
#define ICMP_DF 0x40
#define ICMP_MORE_OR_OFFSET 0x3f

/* The one's complement sum of `words` words of 16 bits, not folded. */
static __always_inline u32 icmp_sum(const u8 *at, u32 words)
{
	u32 sum = 0;

	for (u32 i = 0; i < words; i++)
		sum += *(const u16 *)(at + 2 * i);
	return sum;
}

static __always_inline u16 icmp_folded(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16));
}

static __noinline int icmp_answer4(struct __sk_buff *skb, u32 at, u32 mtu)
{
	u32 zero = 0;
	struct carry *c = bpf_map_lookup_elem(&carry, &zero);
	u8 *ip, *icmp, *quoted;

	if (!c)
		return -1;
	ip = (u8 *)c->words;
	icmp = ip + ICMP_IP4;
	quoted = icmp + ICMP_HEAD;
	if (bpf_skb_load_bytes(skb, at, quoted, ICMP_QUOTES4))
		return -1;
	if (quoted[0] != 0x45 || !(quoted[6] & ICMP_DF) || quoted[6] & ICMP_MORE_OR_OFFSET || quoted[7] ||
	    quoted[9] == ICMP_V4 || quoted[12] >= 224 || quoted[16] >= 224)
		return -1;
	__builtin_memset(ip, 0, ICMP_IP4 + ICMP_HEAD);
	ip[0] = 0x45;
	ip[1] = ICMP_CLASS;
	ip[3] = ICMP_ANSWER4;
	ip[8] = ICMP_TTL;
	ip[9] = ICMP_V4;
	*(u32 *)(ip + 12) = *(u32 *)(quoted + 16);
	*(u32 *)(ip + 16) = *(u32 *)(quoted + 12);
	*(u16 *)(ip + 10) = icmp_folded(icmp_sum(ip, ICMP_IP4 / 2));
	icmp[0] = 3;
	icmp[1] = 4;
	*(u16 *)(icmp + 6) = be16(mtu < 0xffff ? mtu : 0xffff);
	*(u16 *)(icmp + 2) = icmp_folded(icmp_sum(icmp, (ICMP_HEAD + ICMP_QUOTES4) / 2));
	return bpf_skb_change_tail(skb, at + ICMP_ANSWER4, 0) || bpf_skb_store_bytes(skb, at, ip, ICMP_ANSWER4, 0);
}

static __noinline int icmp_answer6(struct __sk_buff *skb, u32 at, u32 mtu)
{
	u32 zero = 0, sum;
	struct carry *c = bpf_map_lookup_elem(&carry, &zero);
	u8 *ip, *icmp, *quoted;

	if (!c)
		return -1;
	ip = (u8 *)c->words;
	icmp = ip + ICMP_IP6;
	quoted = icmp + ICMP_HEAD;
	if (bpf_skb_load_bytes(skb, at, quoted, ICMP_QUOTES6))
		return -1;
	if (quoted[0] >> 4 != 6 || quoted[6] == ICMP_V6 || quoted[8] == 0xff || quoted[24] == 0xff)
		return -1;
	__builtin_memset(ip, 0, ICMP_IP6 + ICMP_HEAD);
	ip[0] = 0x60;
	ip[5] = ICMP_HEAD + ICMP_QUOTES6;
	ip[6] = ICMP_V6;
	ip[7] = ICMP_TTL;
	for (u32 i = 0; i < 16; i += 4) {
		*(u32 *)(ip + 8 + i) = *(u32 *)(quoted + 24 + i);
		*(u32 *)(ip + 24 + i) = *(u32 *)(quoted + 8 + i);
	}
	icmp[0] = 2;
	*(u32 *)(icmp + 4) = be32(mtu);
	/* the pseudo-header: both addresses, the length and the protocol */
	sum = icmp_sum(ip + 8, 16) + be16(ICMP_HEAD + ICMP_QUOTES6) + be16(ICMP_V6);
	*(u16 *)(icmp + 2) = icmp_folded(sum + icmp_sum(icmp, (ICMP_HEAD + ICMP_QUOTES6) / 2));
	return bpf_skb_change_tail(skb, at + ICMP_ANSWER6, 0) || bpf_skb_store_bytes(skb, at, ip, ICMP_ANSWER6, 0);
}

/* Let the packet be the answer to itself, for the host that sent it; 0, or not 0 if it gets none. */
static __noinline int icmp_too_large(struct __sk_buff *skb, u32 mtu)
{
	u16 macs[6], swapped[6], type;
	u32 at = ICMP_MAC;

	if (bpf_skb_load_bytes(skb, 0, macs, sizeof(macs)) || bpf_skb_load_bytes(skb, at - 2, &type, 2))
		return -1;
	if (type == be16(ETH_VLAN)) {
		at += ICMP_TAG;
		if (bpf_skb_load_bytes(skb, at - 2, &type, 2))
			return -1;
	}
	if (type == be16(ETH_IP)) {
		if (icmp_answer4(skb, at, mtu))
			return -1;
	} else if (type != be16(ETH_IP6) || icmp_answer6(skb, at, mtu)) {
		return -1;
	}
	for (u32 i = 0; i < 3; i++) {
		swapped[i] = macs[i + 3];
		swapped[i + 3] = macs[i];
	}
	return bpf_skb_store_bytes(skb, 0, swapped, sizeof(swapped), 0);
}

#endif
