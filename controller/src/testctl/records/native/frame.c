// SPDX-License-Identifier: Apache-2.0
/*
 * A frame of a capture to a packet of a flow.
 *
 * Ethernet with up to two 802.1Q tags, IPv4 or IPv6 without extension headers, TCP with
 * timestamps, SACK blocks, window scale and Accurate ECN.  Sources: RFC 9293 3.1, RFC
 * 7323, RFC 2018, RFC 8200, draft-ietf-tcpm-accurate-ecn 3.2.3.  No byte behind
 * `captured` is read.
 */
#include "packets.h"

enum { OPTION_END, OPTION_NOP, OPTION_WSCALE = 3, OPTION_SACK = 5, OPTION_TIMESTAMP = 8 };

enum { OPTION_ACCECN0 = 172, OPTION_ACCECN1 = 174 };

enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, SERVICE_VLAN = 0x88a8, TCP = 6 };
enum { ETHERNET_BYTES = 14, VLAN_BYTES = 4, VLANS = 2, IPV6_BYTES = 40, TCP_BYTES = 20 };

static uint16_t be16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return __builtin_bswap16(value);
}

static uint32_t be32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return __builtin_bswap32(value);
}

/* Where the IP header begins; 0: there is none, or its first 20 bytes were not captured.
 */
static uint32_t ip_header(const uint8_t *frame, uint32_t captured, uint16_t *kind)
{
	uint32_t at = ETHERNET_BYTES;

	for (int tags = 0; tags <= VLANS && captured >= at + 20;
	     tags++, at += VLAN_BYTES) {
		*kind = be16(frame + at - 2);
		if (*kind == IPV4 || *kind == IPV6)
			return at;
		if (*kind != VLAN && *kind != SERVICE_VLAN)
			return 0;
	}
	return 0;
}

/* An address of 4 or 16 bytes; no call of memcmp(). */
static bool is_address(const struct address *one, const uint8_t *bytes, int32_t size)
{
	if (one->size != size)
		return false;
	return size == 4 ? memcmp(one->bytes, bytes, 4) == 0
			 : memcmp(one->bytes, bytes, 16) == 0;
}

static int host_of(const struct job *job, const uint8_t *bytes, int32_t size)
{
	for (int i = 0; i < job->known; i++) {
		if (is_address(&job->addresses[i], bytes, size))
			return job->addresses[i].host;
	}
	return -1;
}

static void read_sacks(struct packet *packet, const uint8_t *at, int blocks)
{
	packet->has_sacks = true;
	for (int edge = 0; edge < EDGES; edge++)
		packet->edges[edge] =
			edge / 2 < blocks ? (int64_t)be32(at + 4 * edge) : -1;
}

/* Up to three counters of 24 bits: in the order e0, CE, e1, or from the last to the
 * first. */
static void read_accecn(struct packet *packet, const uint8_t *at, int counters, bool back)
{
	packet->has_ace = true;
	for (int i = 0; i < counters && i < 3; i++, at += 3)
		packet->ace[back ? 3 - i : 1 + i] = be32(at - 1) & 0xffffff;
}

/* An option that is cut, or has a length that can't be, ends the options. */
static void read_options(struct packet *packet, const uint8_t *at, const uint8_t *end)
{
	packet->tsval = packet->tsecr = -1;
	packet->wscale = -1;
	packet->has_sacks = false;
	if (end - at == 12 && be32(at) == 0x0101080a) { /* nearly all */
		packet->tsval = be32(at + 4);
		packet->tsecr = be32(at + 8);
		return;
	}
	while (at < end && *at != OPTION_END) {
		int size = 1;

		if (*at != OPTION_NOP) {
			if (end - at < 2 || at[1] < 2 || at[1] > end - at)
				return;
			size = at[1];
		}
		if (*at == OPTION_TIMESTAMP && size == 10) {
			packet->tsval = be32(at + 2);
			packet->tsecr = be32(at + 6);
		} else if (*at == OPTION_WSCALE && size == 3 && packet->flags & SYN) {
			packet->wscale = at[2] < 14 ? (int8_t)at[2] : 14;
		} else if (*at == OPTION_SACK && size >= 10) {
			read_sacks(packet, at + 2, (size - 2) / 8);
		} else if (*at == OPTION_ACCECN0 || *at == OPTION_ACCECN1) {
			read_accecn(packet, at + 2, (size - 2) / 3,
				    *at == OPTION_ACCECN1);
		}
		at += size;
	}
}

/* The host that sent it, if the addresses and ports are those of a flow; -1 if not. */
static int find_flow(const struct job *job, struct packet *packet,
		     const uint8_t *addresses, int32_t size, uint16_t sport,
		     uint16_t dport)
{
	int flow = job->by_port[dport], client = sport, source, sink;

	if (flow < 0) {
		flow = job->by_port[sport];
		client = dport;
	}
	if (flow < 0)
		return -1;
	client -= job->client_port[flow];
	if (client < 0 || client >= job->parallel[flow])
		return -1;
	source = host_of(job, addresses, size);
	sink = host_of(job, addresses + size, size);
	if (source == job->from[flow] && sink == job->to[flow])
		packet->direction = 0;
	else if (source == job->to[flow] && sink == job->from[flow])
		packet->direction = 1;
	else
		return -1;
	packet->flow = (int16_t)flow;
	packet->conn = (int16_t)client;
	return source;
}

/*
 * Whether the frame is a packet of a flow; `packet` then has all but its time.  Fragments
 * after the first, extension headers and packets that are cut before the end of the fixed
 * TCP header are none.
 */
bool decode_frame(const struct job *job, const struct source *source,
		  const uint8_t *frame, uint32_t captured, uint32_t original,
		  struct packet *packet)
{
	uint16_t kind;
	uint32_t ip_at = ip_header(frame, captured, &kind), at, tcp_bytes, end;
	const uint8_t *ip = frame + ip_at, *tcp, *addresses;
	int32_t total, ip_bytes, address_bytes, from;

	if (!ip_at)
		return false;
	if (kind == IPV4) {
		ip_bytes = (ip[0] & 15) * 4;
		if (ip[0] >> 4 != 4 || ip_bytes < 20 || ip[9] != TCP ||
		    be16(ip + 6) & 0x1fff)
			return false;
		total = be16(ip + 2);
		packet->ecn = ip[1] & 3;
		addresses = ip + 12;
		address_bytes = 4;
	} else {
		ip_bytes = IPV6_BYTES;
		if (ip[6] != TCP)
			return false;
		total = be16(ip + 4);
		total += total ? IPV6_BYTES : 0;
		packet->ecn = ip[1] >> 4 & 3;
		addresses = ip + 8;
		address_bytes = 16;
	}
	at = ip_at + (uint32_t)ip_bytes;
	if (captured < at + TCP_BYTES)
		return false;
	tcp = frame + at;
	tcp_bytes = (tcp[12] >> 4) * 4U;
	if (tcp_bytes < TCP_BYTES)
		return false;
	from = find_flow(job, packet, addresses, address_bytes, be16(tcp), be16(tcp + 2));
	if (from < 0)
		return false;
	if (total == 0) /* longer than 16 bits can say */
		total = (int32_t)(original - ip_at);
	total = (int32_t)((uint32_t)total - (uint32_t)ip_bytes - tcp_bytes);
	packet->length = total > 0 ? total : 0;
	packet->headers = (int32_t)(tcp_bytes + at);
	packet->out = from == source->here;
	packet->seq = be32(tcp + 4);
	packet->ack = be32(tcp + 8);
	packet->flags = tcp[13];
	packet->ace[0] = tcp[12] & 1;
	packet->has_ace = packet->ace[0];
	packet->ace[1] = packet->ace[2] = packet->ace[3] = -1;
	packet->window = be16(tcp + 14);
	end = at + tcp_bytes < captured ? at + tcp_bytes : captured;
	read_options(packet, tcp + TCP_BYTES, frame + end);
	packet->left_ns = -1;
	packet->queue_bytes = packet->ordinal = packet->first_ordinal = -1;
	packet->fate = 0;
	return true;
}
