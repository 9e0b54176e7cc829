// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over a capture: its connections with what is counted of each, and, where
 * targets are given, each segment as a frame of Ethernet with the addresses and ports of
 * its target.
 *
 * Two passes number the connections alike.  A connection is known by its addresses and
 * ports; a SYN with another initial number than the SYN before begins a new one, and so
 * does a SYN that follows a reset, or in one that had none (RFC 9293, 3.4).
 */
#include "capture.h"

#include <stdlib.h>

enum {
	FIRST = 1024,
	ETHERNET = 14,
	RECORD = 16,
	MOST_IP_HEADER = 2048, /* with extensions */
	MOST_WRITTEN = RECORD + 16 + MOST_IP_HEADER + 60
};
enum { OPTION_MSS = 2, OPTION_WSCALE = 3, NS = 1000000000, MOST_IP = 65535 };
enum { COOKED = 16, COOKED_OUTGOING = 4, COOKED_OTHER = 3 };
enum {
	COPY_NS = 1000000,
	COPY_NUMBERED_NS = 50000000,
	OVERTAKEN_NS = 3000000,
	BEFORE_BEGIN =
		1 << 16, /* bytes that a capture's first packet may have overtaken */
	MOST_OVERTAKEN_NS = NS
};

static uint32_t hash_of(const struct segment *segment)
{
	const uint8_t *at = segment->ip + (segment->family == 4 ? 12 : 8);
	uint32_t bytes = segment->family == 4 ? 4 : 16;
	uint64_t sum[2] = { segment->sport, segment->dport };

	for (int end = 0; end < 2; end++) {
		for (uint32_t i = 0; i < bytes; i += 4)
			sum[end] = (sum[end] ^ be32(at + (uint32_t)end * bytes + i)) *
				   0x9e3779b97f4a7c15ULL;
	}
	sum[0] += sum[1]; /* the same both ways */
	return (uint32_t)((sum[0] * 0xff51afd7ed558ccdULL) >> 32);
}

/* The end that sent the segment if it is of this connection; -1: it is not. */
static int end_of(const struct connection *known, const struct segment *segment)
{
	uint32_t bytes = segment->family == 4 ? 4 : 16;
	const uint8_t *at = segment->ip + (segment->family == 4 ? 12 : 8);

	if (known->family != segment->family)
		return -1;
	for (int end = 0; end < 2; end++) {
		if (segment->sport == known->port[end] &&
		    segment->dport == known->port[!end] &&
		    !memcmp(known->address[end], at, bytes) &&
		    !memcmp(known->address[!end], at + bytes, bytes))
			return end;
	}
	return -1;
}

static bool enlarge(struct walk *walk)
{
	uint32_t capacity = walk->capacity ? 2 * walk->capacity : FIRST;
	uint32_t *slots = calloc(4UL * capacity, sizeof(*slots));
	struct connection *connections =
		realloc(walk->connections, capacity * sizeof(*connections));

	if (connections)
		walk->connections = connections;
	if (!slots || !connections) {
		free(slots);
		walk->damage = NO_MEMORY;
		return false;
	}
	free(walk->slots);
	walk->slots = slots;
	walk->capacity = capacity;
	walk->mask = 4 * capacity - 1;
	for (uint32_t i = 0; i < walk->count; i++) {
		uint32_t slot = connections[i].hash & walk->mask;

		while (slots[slot] && slots[slot] != connections[i].before)
			slot = (slot + 1) & walk->mask;
		slots[slot] = i + 1;
	}
	return true;
}

static struct connection *add(struct walk *walk, const struct frame *frame,
			      const struct segment *segment, uint32_t hash,
			      uint32_t *slot)
{
	uint32_t bytes = segment->family == 4 ? 4 : 16;
	const uint8_t *at = segment->ip + (segment->family == 4 ? 12 : 8);
	struct connection *made;

	if (walk->count == walk->most) {
		walk->unlisted++;
		return NULL;
	}
	made = &walk->connections[walk->count++];
	memset(made, 0, sizeof(*made));
	memcpy(made->address[0], at, bytes);
	memcpy(made->address[1], at + bytes, bytes);
	made->port[0] = segment->sport;
	made->port[1] = segment->dport;
	made->family = segment->family;
	made->first_ns = made->last_ns = frame->time_ns;
	made->syn_ns = made->synack_ns = made->ack_ns = -1;
	made->opener = NOT_KNOWN;
	made->wscale[0] = made->wscale[1] = -1;
	made->before = *slot;
	made->hash = hash;
	*slot = walk->count;
	return made;
}

/* Whether a SYN is of another connection than the last one of its addresses and ports. */
static bool begins(const struct connection *known, const struct segment *segment, int end)
{
	if (!(segment->flags & SYN) || segment->flags & (ACK | RST))
		return false;
	if (known->syn_seen[end])
		return known->isn[end] != segment->seq || known->resets[!end];
	return known->begun[end] || known->packets[!end] > known->syns[!end];
}

static struct connection *find(struct walk *walk, const struct frame *frame,
			       const struct segment *segment, int *end)
{
	uint32_t hash = hash_of(segment), slot;

	if (walk->count * 2 >= walk->capacity && walk->capacity < 2 * walk->most &&
	    !enlarge(walk))
		return NULL;
	for (slot = hash & walk->mask; walk->slots[slot];
	     slot = (slot + 1) & walk->mask) {
		struct connection *known = &walk->connections[walk->slots[slot] - 1];

		*end = end_of(known, segment);
		if (*end < 0)
			continue;
		if (!begins(known, segment, *end))
			return known;
		break;
	}
	*end = 0;
	return add(walk, frame, segment, hash, &walk->slots[slot]);
}

static void read_options(struct connection *known, const struct segment *segment, int end)
{
	const uint8_t *at = segment->tcp + 20,
		      *stop = segment->tcp + segment->tcp_captured;

	while (at < stop && *at) {
		uint32_t size = 1;

		if (*at != 1) {
			if (stop - at < 2 || at[1] < 2 || at[1] > stop - at)
				return;
			size = at[1];
		}
		if (*at == OPTION_MSS && size == 4)
			known->mss[end] = be16(at + 2);
		if (*at == OPTION_WSCALE && size == 3)
			known->wscale[end] = at[2] < 14 ? (int8_t)at[2] : 14;
		at += size;
	}
}

static void note_handshake(struct connection *known, const struct frame *frame,
			   const struct segment *segment, int end)
{
	if (segment->flags & SYN) {
		known->syns[end]++;
		known->isn[end] = segment->seq;
		known->syn_seen[end] = 1;
		known->syn_flags[end] = segment->flags;
		read_options(known, segment, end);
		if (!(segment->flags & ACK)) {
			if (known->opener == NOT_KNOWN)
				known->opener = (uint8_t)end;
			if (known->synack_ns < 0)
				known->syn_ns = frame->time_ns;
		} else {
			if (known->opener == NOT_KNOWN)
				known->opener = (uint8_t)!end;
			if (known->synack_ns < 0)
				known->synack_ns = frame->time_ns;
		}
	} else if (segment->flags & ACK && known->ack_ns < 0 && known->synack_ns >= 0 &&
		   end == known->opener && !(segment->flags & RST)) {
		known->ack_ns = frame->time_ns;
	}
}

/* IP's identification; 0: it has none. */
static uint16_t number_of(const struct segment *segment)
{
	return segment->family == 4 ? be16(segment->ip + 4) : 0;
}

/*
 * Whether the capture had the same packet just before, as where it passed two interfaces:
 * the same TCP header, and the same identification of IP, which a TCP that sends again
 * renews. Without one ACKs and resets may be alike.
 */
static bool is_copy(struct connection *known, const struct frame *frame,
		    const struct segment *segment, int end)
{
	uint16_t number = number_of(segment);
	uint64_t content = ((uint64_t)segment->payload << 17 | number) + 1U;
	uint32_t at = known->packets[end] % RECENT;
	bool copy = false;

	if (!number && !segment->payload && !(segment->flags & (SYN | FIN)))
		return false;
	for (uint32_t i = 4; i + 4 <= segment->tcp_captured; i += 4)
		content = (content ^ be32(segment->tcp + i)) * 0x9e3779b97f4a7c15ULL;
	for (int i = 0; i < RECENT; i++)
		copy |= known->recent[end][i] == content &&
			frame->time_ns - known->recent_ns[end][i] <=
				(number ? COPY_NUMBERED_NS : COPY_NS);
	known->recent[end][at] = content;
	known->recent_ns[end][at] = frame->time_ns;
	return copy;
}

/* A round trip by the handshake, wherever it was captured; 0: not known. */
static int64_t round_trip(const struct connection *known)
{
	return known->ack_ns >= 0 && known->syn_ns >= 0 ? known->ack_ns - known->syn_ns
							: 0;
}

/* Numbers that were not seen: in place of the oldest such ones. */
static void add_hole(struct connection *known, int end, struct hole added)
{
	struct hole *oldest = known->holes[end];

	for (int i = 0; i < HOLES; i++) {
		struct hole *hole = known->holes[end] + i;

		if (hole->start == hole->end) {
			oldest = hole;
			break;
		}
		if (hole->time_ns < oldest->time_ns)
			oldest = hole;
	}
	*oldest = added;
}

/*
 * Whether data below the highest number was overtaken: none of it was seen, and it left
 * before the packet that overtook it. IP's identification says so; without one, that it
 * is late by less than a round trip, in which no sender learns of a loss, and by no more
 * than packets take other ways. What fills a hole otherwise was lost before the capture.
 */
static bool was_overtaken(struct connection *known, const struct frame *frame,
			  const struct segment *segment, int end)
{
	uint32_t first = segment->seq, last = first + (uint32_t)segment->payload;
	uint16_t number = number_of(segment);
	int64_t round_ns = round_trip(known);

	for (int i = 0; i < HOLES; i++) {
		struct hole *hole = known->holes[end] + i;
		struct hole was = *hole;
		int64_t late_ns = frame->time_ns - was.time_ns;
		int64_t most_ns = MOST_OVERTAKEN_NS;

		if ((int32_t)(first - was.start) < 0 || (int32_t)(was.end - last) < 0)
			continue;
		hole->end = first;
		if (last != was.end)
			add_hole(known, end,
				 (struct hole){ .time_ns = was.time_ns,
						.start = last,
						.end = was.end,
						.number = was.number });
		if (!number || !was.number)
			return late_ns <= OVERTAKEN_NS &&
			       (!round_ns || late_ns < round_ns);
		if (round_ns)
			most_ns = round_ns > OVERTAKEN_NS ? round_ns : OVERTAKEN_NS;
		return (int16_t)(number - was.number) < 0 && late_ns <= most_ns;
	}
	return false;
}

/*
 * A keep-alive with an octet below the next number, when everything is acknowledged: the
 * octet is no data (RFC 9293, 3.8.4) and is left out.
 */
static void leave_out_keepalive(const struct connection *known, struct segment *segment,
				int end)
{
	if (segment->payload == 1 && known->begun[end] && known->acks_seen[end] &&
	    !(segment->flags & (SYN | FIN | RST)) &&
	    segment->seq + 1 == known->highest[end] &&
	    (int32_t)(known->acked[end] - known->highest[end]) >= 0)
		segment->payload = 0;
}

/* What the numbers of a segment say: sent again, overtaken, or new. */
static void note_numbers(struct connection *known, const struct frame *frame,
			 const struct segment *segment, int end)
{
	uint32_t last = segment->seq + (uint32_t)segment->payload +
			!!(segment->flags & SYN) + !!(segment->flags & FIN);
	int32_t ahead = (int32_t)(segment->seq - known->highest[end]);

	if (segment->flags & ACK && (!known->acks_seen[!end] ||
				     (int32_t)(segment->ack - known->acked[!end]) > 0)) {
		known->acked[!end] = segment->ack;
		known->acks_seen[!end] = 1;
	}
	if (segment->flags & RST && !segment->payload)
		return;
	if (known->begun[end] && segment->payload > 0 && ahead < 0) {
		if (was_overtaken(known, frame, segment, end))
			known->reordered[end]++;
		else
			known->again[end]++;
	} else if (known->begun[end] ? ahead > 0 : !(segment->flags & SYN)) {
		uint32_t start = known->begun[end] ? known->highest[end]
						   : segment->seq - BEFORE_BEGIN;

		add_hole(known, end,
			 (struct hole){ .time_ns = frame->time_ns,
					.start = start,
					.end = segment->seq,
					.number = number_of(segment) });
	}
	if (!known->begun[end] || (int32_t)(last - known->highest[end]) > 0)
		known->highest[end] = last;
	known->begun[end] = 1;
}

/* Count a segment to its connection; NULL: there are too many of them. */
struct connection *note_segment(struct walk *walk, const struct frame *frame,
				struct segment *segment, int *end, bool *copy)
{
	struct connection *known = find(walk, frame, segment, end);
	int from = *end;

	if (!known)
		return NULL;
	leave_out_keepalive(known, segment, from);
	*copy = is_copy(known, frame, segment, from);
	known->copies[from] += *copy;
	if (*copy && walk->twice && walk->twice[known - walk->connections])
		return known;
	if (frame->time_ns - known->last_ns > known->silent_ns)
		known->silent_ns = frame->time_ns - known->last_ns;
	if (frame->time_ns > known->last_ns)
		known->last_ns = frame->time_ns;
	if (frame->time_ns < known->first_ns)
		known->first_ns = frame->time_ns;
	known->packets[from]++;
	known->bytes[from] += (uint32_t)segment->payload;
	known->outgoing[from] += frame->side == OUTBOUND;
	known->incoming[from] += frame->side == INBOUND;
	known->partial[from] += segment->partial;
	known->ttl[from] = segment->ttl;
	known->ect[from] |= (uint8_t)(1 << segment->ecn);
	note_handshake(known, frame, segment, from);
	known->fins[from] += !!(segment->flags & FIN);
	known->resets[from] += !!(segment->flags & RST);
	known->zero_windows[from] +=
		!segment->window && !(segment->flags & (SYN | RST | FIN));
	if (segment->payload > 0) {
		known->data[from]++;
		if ((uint32_t)segment->payload > known->largest[from])
			known->largest[from] = (uint32_t)segment->payload;
	}
	note_numbers(known, frame, segment, from);
	return known;
}

/* An ICMP message that quotes a packet of a connection and asks for a smaller one. */
void note_too_big(struct walk *walk, const uint8_t *ip, uint32_t there)
{
	struct segment quoted = { .ip = ip, .family = there ? ip[0] >> 4 : 0 };
	uint32_t bytes = quoted.family == 4 ? (ip[0] & 15) * 4U : 40, slot;
	int end;

	if ((quoted.family != 4 && quoted.family != 6) || bytes < 20 ||
	    there < bytes + 4 || ip[quoted.family == 4 ? 9 : 6] != 6 || !walk->count)
		return;
	quoted.sport = be16(ip + bytes);
	quoted.dport = be16(ip + bytes + 2);
	for (slot = hash_of(&quoted) & walk->mask; walk->slots[slot];
	     slot = (slot + 1) & walk->mask) {
		struct connection *known = &walk->connections[walk->slots[slot] - 1];

		end = end_of(known, &quoted);
		if (end >= 0) {
			known->too_big[end]++;
			return;
		}
	}
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* 10.0.0.0 or fd00:: and a host's number. */
static void put_address(uint8_t *at, uint8_t family, uint32_t host)
{
	if (family == 6) {
		memset(at, 0, 12);
		at[0] = 0xfd;
		at += 12;
	}
	at[0] = family == 6 ? 0 : 10;
	at[1] = (uint8_t)(host >> 16);
	put16(at + 2, host & 0xffff);
}

static int64_t time_written(const struct walk *walk, int64_t time_ns)
{
	int64_t since = time_ns - walk->drift_from_ns;

	return time_ns - walk->base_ns - walk->offset_ns -
	       (int64_t)((__int128)since * walk->drift_ppb / NS);
}

/* As a record of a pcap file in ns, of Ethernet, headers alone: see records/native. */
void write_segment(struct walk *walk, const struct frame *frame,
		   const struct segment *segment, const struct target *target, int end)
{
	uint8_t record[MOST_WRITTEN], *ip = record + RECORD + ETHERNET, *tcp;
	bool from_client = end == target->client;
	uint32_t ip_bytes = segment->family == 4 ? 20 : 40, total, size;
	uint32_t source = from_client ? target->client_host : target->server_host;
	uint32_t sink = from_client ? target->server_host : target->client_host;
	int64_t exact_ns = time_written(walk, frame->time_ns);
	int64_t time_ns = exact_ns > 0 ? exact_ns : 0;
	uint32_t header[4];

	memset(record, 0, RECORD + ETHERNET + 40);
	total = ip_bytes + segment->tcp_bytes + (uint32_t)segment->payload;
	if (segment->family == 4) {
		ip[0] = 0x45;
		ip[1] = segment->ecn;
		put16(ip + 2, total > MOST_IP ? 0 : total);
		ip[9] = 6;
		put_address(ip + 12, 4, source);
		put_address(ip + 16, 4, sink);
		put16(ip - 2, 0x0800);
	} else {
		ip[0] = 0x60;
		ip[1] = (uint8_t)(segment->ecn << 4);
		put16(ip + 4, total - 40 > MOST_IP ? 0 : total - 40);
		ip[6] = 6;
		put_address(ip + 8, 6, source);
		put_address(ip + 24, 6, sink);
		put16(ip - 2, 0x86dd);
	}
	tcp = ip + ip_bytes;
	memcpy(tcp, segment->tcp, segment->tcp_captured);
	put16(tcp, from_client ? target->client_port : target->server_port);
	put16(tcp + 2, from_client ? target->server_port : target->client_port);
	size = ETHERNET + ip_bytes + segment->tcp_captured;
	header[0] = (uint32_t)(time_ns / NS);
	header[1] = (uint32_t)(time_ns % NS);
	header[2] = size;
	header[3] = ETHERNET + total;
	memcpy(record, header, sizeof(header));
	memcpy(walk->output + walk->used, record, RECORD + size);
	walk->used += RECORD + size;
	walk->full = walk->size - walk->used < MOST_WRITTEN;
}

/* As a record of Linux cooked frames, with the headers as they are; for a file by time.
 */
static void write_verbatim(struct walk *walk, const struct frame *frame,
			   const struct segment *segment)
{
	uint32_t ip_bytes = (uint32_t)(segment->tcp - segment->ip), size;
	uint32_t total = ip_bytes + segment->tcp_bytes + (uint32_t)segment->payload;
	int64_t since_ns = frame->time_ns - walk->base_ns;
	uint8_t *to = walk->output + walk->used;
	uint32_t header[4];

	if (ip_bytes > MOST_IP_HEADER)
		return;
	size = COOKED + ip_bytes + segment->tcp_captured;
	header[0] = (uint32_t)(since_ns / NS);
	header[1] = (uint32_t)(since_ns % NS);
	header[2] = size;
	header[3] = COOKED + total;
	memcpy(to, header, sizeof(header));
	memset(to + RECORD, 0, COOKED);
	put16(to + RECORD, frame->side == OUTBOUND  ? COOKED_OUTGOING
			   : frame->side == INBOUND ? 0
						    : COOKED_OTHER);
	put16(to + RECORD + COOKED - 2, segment->family == 4 ? 0x0800 : 0x86dd);
	memcpy(to + RECORD + COOKED, segment->ip, ip_bytes + segment->tcp_captured);
	walk->used += RECORD + size;
	walk->full = walk->size - walk->used < MOST_WRITTEN;
}

static void note_time(struct walk *walk, const struct frame *frame)
{
	if (!walk->frames++) {
		walk->first_ns = walk->highest_ns = walk->final_ns = frame->time_ns;
	} else if (frame->time_ns < walk->last_ns) {
		walk->backwards++;
		if (walk->highest_ns - frame->time_ns > walk->backwards_ns)
			walk->backwards_ns = walk->highest_ns - frame->time_ns;
	}
	walk->last_ns = frame->time_ns;
	if (frame->time_ns > walk->highest_ns)
		walk->highest_ns = frame->time_ns;
	if (frame->time_ns < walk->first_ns)
		walk->first_ns = frame->time_ns;
}

/*
 * Read whole records of data[0..size), the file's bytes from walk->at on; how many bytes
 * were taken.  It ends early with walk->full (the output: call again when it is empty) or
 * walk->damage.
 */
uint64_t capture_feed(struct walk *walk, const uint8_t *data, uint64_t size)
{
	struct frame frame;
	struct segment segment;
	uint64_t at = 0;

	while (!walk->full && !walk->damage &&
	       next_frame(walk, data, size, &at, &frame)) {
		const struct target *target;
		struct connection *known;
		bool copy;
		int end;

		if (frame.original < frame.captured)
			frame.original = frame.captured;
		note_time(walk, &frame);
		if (!find_segment(walk, &frame, &segment))
			continue;
		if (walk->verbatim) {
			write_verbatim(walk, &frame, &segment);
			continue;
		}
		known = note_segment(walk, &frame, &segment, &end, &copy);
		if (!known || !walk->targets)
			continue;
		target = &walk->targets[known - walk->connections];
		if (target->written == 1 || (target->written && !copy))
			write_segment(walk, &frame, &segment, target, end);
	}
	walk->at += at;
	return at;
}

void capture_free(struct walk *walk)
{
	free(walk->connections);
	free(walk->slots);
	walk->connections = NULL;
	walk->slots = NULL;
}

/* The sizes of the structures, for who has them in another language. */
void capture_sizes(uint64_t *sizes)
{
	sizes[0] = sizeof(struct connection);
	sizes[1] = sizeof(struct target);
	sizes[2] = sizeof(struct walk);
}
