// SPDX-License-Identifier: Apache-2.0
/*
 * The TCP segment of a frame: Ethernet with any number of VLAN tags and PPPoE, Linux
 * cooked 1 and 2, raw IP, loopback; IPv4, and IPv6 with extension headers.
 *
 * The payload's length is the IP header's, so that a frame may be cut behind its TCP
 * header; where that is 0 (a frame of segmentation offload above 64 KiB) it is the
 * frame's. Sources: link types of draft-ietf-opsawg-pcaplinktype, RFC 791, RFC 8200, RFC
 * 2516.  No byte behind the captured ones is read.
 */
#include "capture.h"

enum {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_RAW_A = 12,
	LINK_RAW_B = 14,
	LINK_RAW = 101
};
enum {
	LINK_LOOP = 108,
	LINK_SLL = 113,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_SLL2 = 276
};
enum {
	IPV4 = 0x0800,
	IPV6 = 0x86dd,
	VLAN = 0x8100,
	SERVICE_VLAN = 0x88a8,
	OLD_QINQ = 0x9100
};
enum { PPPOE = 0x8864, PPP_IPV4 = 0x21, PPP_IPV6 = 0x57, ANY = 0 };
enum { TCP = 6, HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, AH = 51, DESTINATION = 60 };
enum { TCP_BYTES = 20, SLL_OUTGOING = 4 };
/* ICMP's messages of path MTU discovery: RFC 1191, RFC 4443 3.2. */
enum { ICMP = 1, UNREACHABLE = 3, TOO_BIG = 4, ICMPV6 = 58, TOO_BIG_V6 = 2 };

/* Where the network header begins and its EtherType (ANY: by the version of IP); false:
 * none was captured. */
static bool tagged(const struct frame *frame, uint32_t *at, uint16_t *kind)
{
	while (*kind == VLAN || *kind == SERVICE_VLAN || *kind == OLD_QINQ) {
		if (frame->captured < *at + 4)
			return false;
		*kind = be16(frame->bytes + *at + 2);
		*at += 4;
	}
	if (*kind == PPPOE && frame->captured >= *at + 8) {
		uint16_t protocol = be16(frame->bytes + *at + 6);

		*kind = protocol == PPP_IPV4 ? IPV4 : protocol == PPP_IPV6 ? IPV6 : PPPOE;
		*at += 8;
	}
	return true;
}

static void cooked_side(struct frame *frame, unsigned int type)
{
	if (type == SLL_OUTGOING)
		frame->side = OUTBOUND;
	else if (type == 0)
		frame->side = INBOUND;
}

static bool network(struct walk *walk, struct frame *frame, uint32_t *at, uint16_t *kind)
{
	const uint8_t *bytes = frame->bytes;
	uint32_t captured = frame->captured;

	*kind = ANY;
	switch (frame->link) {
	case LINK_ETHERNET:
		*at = 14;
		break;
	case LINK_SLL:
		*at = 16;
		break;
	case LINK_SLL2:
		*at = 20;
		break;
	case LINK_NULL:
	case LINK_LOOP:
		*at = 4;
		walk->cut += captured < 4;
		return captured >= 4;
	case LINK_RAW:
	case LINK_RAW_A:
	case LINK_RAW_B:
	case LINK_IPV4:
	case LINK_IPV6:
		*at = 0;
		return true;
	default:
		walk->unknown_link++;
		walk->some_link = frame->link;
		return false;
	}
	if (captured < *at) {
		walk->cut++;
		return false;
	}
	if (frame->link == LINK_SLL)
		cooked_side(frame, be16(bytes));
	if (frame->link == LINK_SLL2)
		cooked_side(frame, bytes[10]);
	*kind = be16(bytes + (frame->link == LINK_SLL2 ? 0 : *at - 2));
	if (tagged(frame, at, kind) && (*kind == IPV4 || *kind == IPV6))
		return true;
	walk->not_tcp++;
	return false;
}

/* The sum of a checksum's pseudo header and of 16-bit words, folded. */
static uint16_t pseudo(const uint8_t *addresses, uint32_t bytes, uint32_t length)
{
	uint32_t sum = TCP + (length >> 16) + (length & 0xffff);

	for (uint32_t i = 0; i < bytes; i += 2)
		sum += be16(addresses + i);
	sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)((sum >> 16) + (sum & 0xffff));
}

/* Behind the extension headers of IPv6: where TCP begins; 0: no TCP, a fragment, or cut.
 */
static uint32_t behind_extensions(struct walk *walk, const uint8_t *ip, uint32_t there)
{
	uint32_t at = 40, size;
	uint8_t next = ip[6];

	for (; next != TCP; at += size) {
		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION &&
		    next != FRAGMENT && next != AH) {
			walk->not_tcp++;
			if (next == ICMPV6 && there >= at + 8 && ip[at] == TOO_BIG_V6)
				note_too_big(walk, ip + at + 8, there - at - 8);
			return 0;
		}
		if (there < at + 8) {
			walk->cut++;
			return 0;
		}
		if (next == FRAGMENT && be16(ip + at + 2) & 0xfff9) {
			walk->fragments++;
			return 0;
		}
		size = next == FRAGMENT ? 8
		       : next == AH	? ip[at + 1] * 4U + 8
					: ip[at + 1] * 8U + 8;
		next = ip[at];
	}
	return at;
}

/* The IP header's length, with extensions, and the packet's; 0: no TCP segment. */
static uint32_t internet(struct walk *walk, const uint8_t *ip, uint32_t there,
			 uint32_t original, struct segment *segment, uint32_t *total)
{
	uint32_t bytes;

	if (segment->family == 4) {
		bytes = (ip[0] & 15) * 4U;
		if (bytes < 20 || ip[9] != TCP) {
			walk->not_tcp++;
			if (bytes >= 20 && ip[9] == ICMP && there >= bytes + 8 &&
			    ip[bytes] == UNREACHABLE && ip[bytes + 1] == TOO_BIG)
				note_too_big(walk, ip + bytes + 8, there - bytes - 8);
			return 0;
		}
		if (be16(ip + 6) & 0x3fff) {
			walk->fragments++;
			return 0;
		}
		*total = be16(ip + 2);
		segment->ecn = ip[1] & 3;
		segment->ttl = ip[8];
	} else {
		bytes = behind_extensions(walk, ip, there);
		*total = be16(ip + 4);
		*total += *total ? 40 : 0;
		segment->ecn = ip[1] >> 4 & 3;
		segment->ttl = ip[7];
	}
	*total = *total ? *total : original;
	return bytes;
}

/* Whether the frame has the fixed part of a TCP header; what it has else is counted. */
bool find_segment(struct walk *walk, struct frame *frame, struct segment *segment)
{
	uint32_t at, there, bytes, total, addresses;
	uint16_t kind;

	if (!network(walk, frame, &at, &kind))
		return false;
	segment->ip = frame->bytes + at;
	there = frame->captured > at ? frame->captured - at : 0;
	segment->family = there ? segment->ip[0] >> 4 : 0;
	if ((segment->family != 4 && segment->family != 6) ||
	    (kind != ANY && (kind == IPV4) != (segment->family == 4))) {
		walk->not_tcp += there != 0;
		walk->cut += there == 0;
		return false;
	}
	addresses = segment->family == 4 ? 4 : 16;
	if (there < (segment->family == 4 ? 20 : 40)) {
		walk->cut++;
		return false;
	}
	bytes = internet(walk, segment->ip, there,
			 frame->original > at ? frame->original - at : 0, segment,
			 &total);
	if (!bytes)
		return false;
	segment->tcp = segment->ip + bytes;
	if (there < bytes + TCP_BYTES) {
		walk->cut++;
		return false;
	}
	segment->tcp_bytes = (segment->tcp[12] >> 4) * 4U;
	if (segment->tcp_bytes < TCP_BYTES || total < bytes + segment->tcp_bytes) {
		walk->short_ip++;
		return false;
	}
	segment->tcp_captured =
		there - bytes < segment->tcp_bytes ? there - bytes : segment->tcp_bytes;
	segment->payload = (int32_t)(total - bytes - segment->tcp_bytes);
	segment->sport = be16(segment->tcp);
	segment->dport = be16(segment->tcp + 2);
	segment->seq = be32(segment->tcp + 4);
	segment->ack = be32(segment->tcp + 8);
	segment->flags = segment->tcp[13];
	segment->window = be16(segment->tcp + 14);
	segment->partial =
		pseudo(segment->ip + (segment->family == 4 ? 12 : 8), 2 * addresses,
		       total - bytes) == be16(segment->tcp + 16);
	walk->tcp++;
	return true;
}
