// SPDX-License-Identifier: Apache-2.0
/*
 * All sources of a point to the columns of its packets, in one pass: each packet is
 * decoded, merged by time, set in relation to its stream, and written to all columns at
 * once.
 *
 * What belongs to a whole stream, the number of its first byte and the scale of its
 * windows, is given: job->streams. The pass gathers what it should have been; where that
 * is not so, the caller calls again.  Sources: RFC 9293 3.4, RFC 7323 2.2.
 */
#include "packets.h"

#include <sys/mman.h>

enum { BYTES_AT_ONCE = 1 << 24 };
enum { TIMESTAMPS = 12, ETHERNET_BYTES = 14 };

static void gather(struct job *job, const struct source *source,
		   const struct packet *packet)
{
	struct stream *stream = &job->streams[packet->stream];
	struct stream *other = &job->streams[packet->stream ^ 1];
	int64_t now = packet->time_ns;

	stream->seen = true;
	if (packet->flags & SYN) {
		if (!stream->syn_seen || now < stream->syn_ns) {
			stream->syn_seen = true;
			stream->syn_ns = now;
			stream->syn_seq = packet->seq;
		}
		if (source->where < job->hosts && source->where >= stream->wscale_where) {
			stream->wscale = packet->wscale;
			stream->wscale_where = source->where;
		}
	} else if (!stream->data_seen || now < stream->data_ns) {
		stream->data_seen = true;
		stream->data_ns = now;
		stream->data_seq = packet->seq;
	}
	if (packet->flags & ACK && (!other->ack_seen || now < other->ack_ns)) {
		other->ack_seen = true;
		other->ack_ns = now;
		other->acked = packet->ack;
	}
}

/* Numbers that never wrap: two that follow each other in a series are less than 2^31
 * apart. */
static int64_t unwrapped(int64_t before, uint32_t last, uint32_t next)
{
	return before + (int32_t)(next - last);
}

static void write_rare(struct job *job, const struct packet *packet, int64_t ack)
{
	int64_t *values = job->to_columns.rare + job->rares * RARE;

	for (int i = 0; i < EDGES; i++) {
		uint32_t apart = (uint32_t)packet->edges[i] - packet->ack;
		bool known = packet->has_sacks && packet->edges[i] >= 0;

		values[i] = known ? ack + (int32_t)apart : -1;
	}
	for (int i = 0; i < ACE; i++)
		values[EDGES + i] = packet->has_ace ? packet->ace[i] : -!!i;
	job->to_columns.rare_row[job->rares++] = (int64_t)job->rows;
}

static void write_row(struct job *job, const struct source *source,
		      const struct packet *packet)
{
	const struct columns *to = &job->to_columns;
	const struct stream *stream = &job->streams[packet->stream];
	const struct stream *other = &job->streams[packet->stream ^ 1];
	struct series *series =
		job->series + (source - job->sources) * job->flows * job->conns * 2;
	uint64_t row = job->rows;
	bool has_ack = packet->flags & ACK;
	uint32_t seq = packet->seq - stream->base,
		 ack = has_ack ? packet->ack - other->base : 0;
	int64_t end;

	series += packet->stream;
	series->seq = unwrapped(series->seq, series->last_seq, seq);
	series->ack = unwrapped(series->ack, series->last_ack, ack);
	series->last_seq = seq;
	series->last_ack = ack;
	end = series->seq + packet->length + !!(packet->flags & (SYN | FIN));
	if (series->begun && series->seq < series->highest && end > series->seq)
		to->retrans[row >> 3] |= (uint8_t)(1 << (row & 7));
	if (!series->begun || end > series->highest)
		series->highest = end;
	series->begun = true;
	if (packet->length > series->longest)
		series->longest = packet->length;
	if (packet->has_sacks || packet->has_ace)
		write_rare(job, packet, series->ack);
	if (packet->out)
		to->out[row >> 3] |= (uint8_t)(1 << (row & 7));
	to->time_ns[row] = packet->time_ns;
	to->where[row] = (int16_t)source->where;
	to->flow[row] = packet->flow;
	to->conn[row] = packet->conn;
	to->direction[row] = packet->direction;
	to->seq[row] = series->seq;
	to->ack[row] = has_ack ? series->ack : -1;
	to->length[row] = packet->length;
	to->segs[row] = 1;
	to->wire_bytes[row] =
		(int32_t)((uint32_t)packet->length + (uint32_t)packet->headers);
	to->flags[row] = packet->flags;
	to->ecn[row] = packet->ecn;
	to->window[row] = packet->flags & SYN
				  ? packet->window
				  : (int64_t)((uint64_t)packet->window << stream->shift);
	to->tsval[row] = packet->tsval;
	to->tsecr[row] = packet->tsecr;
	to->queue_bytes[row] = packet->queue_bytes;
	to->fate[row] = packet->fate;
	to->left_ns[row] = packet->left_ns;
	to->ordinal[row] = packet->ordinal;
	to->first_ordinal[row] = packet->first_ordinal;
	job->rows++;
}

/* What was read of a file is not needed in memory any more; it comes back when it is. */
static void release(struct source *source)
{
	uint64_t done = source->at & ~(uint64_t)(BYTES_AT_ONCE - 1);

	if (done == source->released)
		return;
	(void)madvise((void *)(source->data + source->released), done - source->released,
		      MADV_DONTNEED);
	source->released = done;
}

static enum outcome advance(const struct job *job, struct source *source)
{
	struct packet *packet = &source->now;
	enum outcome found = next_packet(job, source);

	if (found != DONE || source->ended)
		return found;
	if (packet->time_ns < source->last_ns && job->merged)
		return UNORDERED;
	source->last_ns = packet->time_ns;
	release(source);
	packet->stream =
		(packet->flow * job->conns + packet->conn) * 2 + packet->direction;
	return DONE;
}

/* The source whose packet is next; NULL when all have ended. */
static struct source *next_source(const struct job *job)
{
	struct source *first = NULL;

	for (int i = 0; i < job->count; i++) {
		struct source *source = &job->sources[i];

		if (source->ended || (first && source->now.time_ns >= first->now.time_ns))
			continue;
		if (!job->merged)
			return source;
		first = source;
	}
	return first;
}

/* Read the sources to their end, or until the caller has to do something. */
int packets_read(struct job *job)
{
	struct source *source;
	enum outcome found;

	for (; job->begun < job->count; job->begun++) {
		found = advance(job, &job->sources[job->begun]);
		if (found != DONE)
			return found;
	}
	while ((source = next_source(job))) {
		if ((source->now.has_sacks || source->now.has_ace) &&
		    job->rares == job->most_rares)
			return MORE_RARE;
		gather(job, source, &source->now);
		write_row(job, source, &source->now);
		found = advance(job, source);
		if (found != DONE)
			return found;
	}
	return DONE;
}

/* The first connection of a flow in a direction, as a source has it; the next is 2 on. */
static struct series *first_of(const struct job *job, int source, int flow, int direction)
{
	return job->series + (source * job->flows + flow) * job->conns * 2 + direction;
}

static bool sends(const struct job *job, int source, int flow, int direction)
{
	return job->sources[source].here == (direction ? job->to : job->from)[flow];
}

/*
 * What a packet of a flow's direction may carry: the longest payload that others saw, or
 * what fits where there are none, or have merged packets too.  Whether a host has longer
 * ones.
 */
static bool find_whole(struct job *job, int flow, int direction)
{
	bool some = false;

	for (int source = 0; source < job->count; source++) {
		struct series *first = first_of(job, source, flow, direction);

		first->whole = 0;
		for (int conn = 0; conn < job->parallel[flow]; conn++)
			if (first[conn * 2].longest > first->whole)
				first->whole = first[conn * 2].longest;
	}
	for (int where = 0; where < job->hosts; where++) {
		struct series *first = first_of(job, where, flow, direction);

		first->elsewhere = 0;
		for (int other = 0; other < job->count; other++) {
			int32_t there = first_of(job, other, flow, direction)->whole;

			if (other != where && there > first->elsewhere)
				first->elsewhere = there;
		}
		if (first->elsewhere > job->fits[flow])
			first->elsewhere = 0;
	}
	for (int where = 0; where < job->hosts; where++) {
		struct series *first = first_of(job, where, flow, direction);
		int32_t most = job->fits[flow] - TIMESTAMPS, elsewhere = first->elsewhere;

		/* What is lost is nowhere else; what arrives was sent. */
		if (elsewhere > most ||
		    (elsewhere && !sends(job, where, flow, direction)))
			most = elsewhere;
		some |= first->whole > most;
		first->whole = most;
	}
	return some;
}

/* Packets on the wire that a captured record stands for, where it is longer than one. */
void packets_count_segments(struct job *job)
{
	const struct columns *to = &job->to_columns;
	bool some = false;

	for (int flow = 0; flow < job->flows; flow++)
		for (int direction = 0; direction < 2; direction++)
			some |= find_whole(job, flow, direction);
	for (uint64_t row = 0; some && row < job->rows; row++) {
		int32_t length = to->length[row], mss, segs;
		uint32_t headers = (uint32_t)to->wire_bytes[row] - (uint32_t)length;
		const struct series *first;

		if (to->where[row] >= job->hosts)
			continue;
		first = first_of(job, to->where[row], to->flow[row], to->direction[row]);
		if (length <= first->whole)
			continue;
		mss = first->elsewhere ? first->elsewhere
				       : job->mtu[to->flow[row]] + ETHERNET_BYTES -
						 (int32_t)headers;
		mss = mss > 1 ? mss : 1;
		segs = length > 0 ? (int32_t)(((int64_t)length + mss - 1) / mss) : 1;
		to->segs[row] = (int16_t)segs;
		to->wire_bytes[row] =
			(int32_t)((uint32_t)length + (uint32_t)segs * headers);
	}
}

/* The sizes of the structures, for who has them in another language. */
void packets_sizes(uint64_t *sizes)
{
	sizes[0] = sizeof(struct source);
	sizes[1] = sizeof(struct stream);
	sizes[2] = sizeof(struct series);
	sizes[3] = sizeof(struct address);
	sizes[4] = sizeof(struct columns);
	sizes[5] = sizeof(struct job);
}
