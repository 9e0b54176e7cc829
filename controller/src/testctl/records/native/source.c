// SPDX-License-Identifier: Apache-2.0
/*
 * The next packet of a capture or of a switch's telemetry.
 *
 * Sources: draft-ietf-opsawg-pcap; the layout of telemetry is given
 * (p4c_ebpf/runtime/telemetry.h).
 */
#include "packets.h"

/* Of FATES in records/schema.py. */
enum fate {
	NONE,
	DROP,
	MARK,
	DELAY,
	ECHO,
	CLEAR,
	LOSE,
	QUEUE_MARK,
	BUFFER_DROP,
	OTHER_DROP,
	LINK_DROP,
	REORDER,
	AQM_DROP
};

/* p4c_ebpf/runtime/telemetry.h */
enum verdict { SENT, BY_PROGRAM, FULL_BUFFER, ASTRAY, BY_LINK, BY_AQM };

enum { CE = 3, NS = 1000000000 };

static uint32_t word(const struct source *source, uint64_t at)
{
	uint32_t value;

	memcpy(&value, source->data + at, sizeof(value));
	return source->big_endian ? __builtin_bswap32(value) : value;
}

/* The whole record at source->at: its bytes after the header; false at the end.  *good:
 * it can be so. */
static bool whole_record(const struct source *source, uint32_t *captured, bool *good)
{
	uint64_t at = source->at;

	if (source->size < at + RECORD_HEADER)
		return false;
	*captured = word(source, at + 8);
	*good = *captured <= source->longest;
	if (!*good)
		return true;
	if (source->size - at - RECORD_HEADER < *captured)
		return false;
	*good = word(source, at + 4) < source->fractions &&
		*captured <= word(source, at + 12);
	return true;
}

static enum outcome next_of_capture(const struct job *job, struct source *source)
{
	struct packet *packet = &source->now;
	uint32_t captured;
	bool good;

	for (; source->records; source->records--) {
		uint64_t at = source->at;

		if (!whole_record(source, &captured, &good))
			break;
		if (!good)
			return DAMAGED;
		source->at += RECORD_HEADER + captured;
		if (!decode_frame(job, source, source->data + at + RECORD_HEADER,
				  captured, word(source, at + 12), packet))
			continue;
		source->records--;
		packet->time_ns = (int64_t)word(source, at) * NS - job->t0_ns +
				  (int64_t)word(source, at + 4) * source->fraction_ns;
		return DONE;
	}
	source->ended = true;
	return DONE;
}

/* What happened to a packet: not what was asked. */
static uint8_t fate_of(const uint64_t *fields)
{
	uint8_t asked = (uint8_t)fields[FATE];
	bool came_marked = (fields[ECN_IN] & 3) == CE;
	bool marked = (fields[ECN_OUT] & 3) == CE && !came_marked;

	if (fields[VERDICT] == FULL_BUFFER)
		return BUFFER_DROP;
	if (fields[VERDICT] == BY_LINK)
		return LINK_DROP;
	if (fields[VERDICT] == BY_AQM)
		return AQM_DROP;
	if (fields[VERDICT] != SENT)
		return asked == DROP || asked == LOSE ? asked : OTHER_DROP;
	if (marked && asked == NONE)
		return QUEUE_MARK;
	return asked == MARK && !marked && !came_marked ? NONE : asked;
}

/* Eight bytes are read of every field, where the file has them. */
static void load(const struct source *source, const uint8_t *record, uint64_t *fields)
{
	uint64_t there = source->size - (uint64_t)(record - source->data);

	for (int i = 0; i < TELEMETRY_FIELDS; i++) {
		uint64_t offset = source->offsets[i], bytes = sizeof(fields[i]);

		if (__builtin_expect(there < offset + bytes, 0)) {
			bytes = there - offset;
			fields[i] = 0;
		}
		memcpy(&fields[i], record + offset, bytes);
		fields[i] &= source->masks[i];
	}
}

static void fill(const struct job *job, const struct source *source,
		 const uint64_t *fields, struct packet *packet)
{
	uint64_t verdict = fields[VERDICT],
		 left_ns = fields[DEPARTURE] + (uint64_t)source->offset_ns;
	uint64_t most = INT32_MAX;

	packet->time_ns = (int64_t)(fields[ARRIVAL] + (uint64_t)source->offset_ns -
				    (uint64_t)job->t0_ns);
	packet->left_ns = -1;
	if (fields[DEPARTURE] && verdict == SENT && (int64_t)left_ns >= 0)
		packet->left_ns = (int64_t)(left_ns - (uint64_t)job->t0_ns);
	packet->length = (int32_t)fields[PAYLOAD];
	packet->headers = (int32_t)(uint32_t)(fields[WIRE_BYTES] - fields[PAYLOAD]);
	packet->flags = (uint8_t)fields[FLAGS];
	packet->ecn = fields[ECN_IN] & 3;
	packet->window = (int64_t)fields[WINDOW];
	packet->seq = (uint32_t)fields[SEQ];
	packet->ack = (uint32_t)fields[ACK_NUMBER];
	packet->queue_bytes = -1;
	if (verdict == SENT || verdict == FULL_BUFFER || verdict == BY_LINK ||
	    verdict == BY_AQM)
		packet->queue_bytes =
			(int32_t)(fields[QUEUE_BYTES] < most ? fields[QUEUE_BYTES]
							     : most);
	packet->fate = fate_of(fields);
	packet->ordinal = (int32_t)fields[ORDINAL];
	packet->first_ordinal = (int32_t)fields[FIRST_ORDINAL];
	packet->out = packet->has_sacks = packet->has_ace = false;
	packet->tsval = packet->tsecr = packet->wscale = -1;
}

static enum outcome next_of_switch(const struct job *job, struct source *source)
{
	uint64_t fields[TELEMETRY_FIELDS];
	struct packet *packet = &source->now;

	for (; source->records && source->at < source->size; source->records--) {
		const uint8_t *record = source->data + source->at;
		int64_t number;

		source->at += source->record_bytes;
		load(source, record, fields);
		number = (int64_t)(fields[FLOW] - 1);
		if (number < 0 || number >> 1 >= job->places)
			continue;
		source->records--;
		packet->direction = number & 1;
		packet->flow = job->place_flow[number >> 1];
		packet->conn = job->place_conn[number >> 1];
		fill(job, source, fields, packet);
		return DONE;
	}
	source->ended = true;
	return DONE;
}

/* Put the next packet of a flow into source->now, or end the source. */
enum outcome next_packet(const struct job *job, struct source *source)
{
	return source->record_bytes ? next_of_switch(job, source)
				    : next_of_capture(job, source);
}

/*
 * Look for damage in a capture: 0 none, 1 a captured length above `longest`, 2 a fraction
 * that is none, 3 a captured length above the packet's.  source->at: where.  A length, by
 * which the next record is found, goes first wherever it is.
 */
int packets_check(struct source *source)
{
	uint64_t first = 0;
	uint32_t captured;
	int found = 0;
	bool good;

	while (whole_record(source, &captured, &good)) {
		if (captured > source->longest)
			return 1;
		if (!good && !found) {
			found = word(source, source->at + 4) >= source->fractions ? 2 : 3;
			first = source->at;
		}
		source->at += RECORD_HEADER + captured;
	}
	source->at = found ? first : source->at;
	return found;
}
