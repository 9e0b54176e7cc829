// SPDX-License-Identifier: Apache-2.0
/* Departures, their arrivals and their ACKs. */
#include <stddef.h>

#include "search.h"
#include "walks.h"

/* How many intervals cover each byte, which are nearly in order; begins, ends: of all
 * intervals, ascending. */
void walks_covering(const int64_t *begins, const int64_t *ends, int64_t intervals,
		    const int64_t *bytes, int64_t count, int32_t *covering)
{
	struct line begun = { begins, intervals, true, 0 },
		    ended = { ends, intervals, true, 0 };

	for (int64_t i = 0; i < count; i++)
		covering[i] = (int32_t)(place_of(&begun, bytes[i]) -
					place_of(&ended, bytes[i]));
}

/* The first arrival that covers the last byte of each departure and is not before it; -1
 * if it is. */
void walks_match(const struct matching *of)
{
	struct line ends = { of->into_ends, of->arrivals, true, 0 };

	for (int64_t i = 0; i < of->departures; i++) {
		int64_t byte = of->end[i] - 1, at = place_of(&ends, byte), into;

		of->arrival[i] = -1;
		if (at == of->arrivals)
			continue;
		into = of->by_end ? of->by_end[at] : at;
		if (of->into_start[into] <= byte && of->into_ns[into] >= of->time_ns[i])
			of->arrival[i] = (int32_t)into;
	}
}

/* Departure and latency of what arrived; how many. */
int64_t walks_latencies(const int32_t *row, const int32_t *arrival, int64_t packets,
			const int64_t *sent_ns, const int64_t *arrived_ns,
			int64_t offset_ns, int64_t *left_ns, int64_t *latency_ns)
{
	int64_t found = 0;

	for (int64_t i = 0; i < packets; i++) {
		int64_t left;

		if (arrival[i] < 0)
			continue;
		left = sent_ns[row[i]];
		left_ns[found] = left;
		latency_ns[found] = arrived_ns[arrival[i]] - left - offset_ns;
		found++;
	}
	return found;
}

static const int TIME_BITS = 47;

/* Whether a connection retransmitted after `left`, up to `back`. */
static bool repaired(struct line *again, int64_t conn, int64_t left, int64_t back)
{
	int64_t first;

	if (!again->count)
		return false;
	first = place_of(again, (conn << TIME_BITS) + left);
	return place_of(again, (conn << TIME_BITS) + back) != first;
}

/* The samples that Karn's rule leaves; how many. */
int64_t walks_round_trips(const struct round_trips *of)
{
	struct line acks = { of->highest, of->acks, false, 0 },
		    again = { of->again, of->agains, true, 0 };
	int64_t found = 0;

	for (int64_t i = 0; i < of->packets; i++) {
		int64_t at = place_of(&acks, of->end[i]),
			conn = of->start[i] >> CONN_BITS;
		int64_t left, back;

		if (at == of->acks || !of->once[i] ||
		    (of->highest[at] + 1) >> CONN_BITS != conn)
			continue;
		left = of->sent_ns[of->row[i]];
		back = of->ack_ns[of->position ? of->position[at] : at];
		if (back < left || repaired(&again, conn, left, back))
			continue;
		of->back_ns[found] = back;
		of->rtt_ns[found] = back - left;
		of->conn[found] = (int16_t)conn;
		found++;
	}
	return found;
}
