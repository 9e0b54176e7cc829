// SPDX-License-Identifier: Apache-2.0
/*
 * A receiver that reads at a rate, or not at all for a while: its receive window closes,
 * and the sender sends window probes (RFC 9293, 3.8.6.1).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tgen.h"

#define PART_LEAST 1448 /* one segment of MTU 1500 with time stamps */
#define TICK_NS 1000000 /* what the rate gives in this time is read at once */

/* "NS-NS,NS-NS", in order. */
bool pauses_parse(const char *text, struct pauses *pauses)
{
	int64_t before_ns = -1;

	memset(pauses, 0, sizeof(*pauses));
	while (pauses->count < PAUSES_MAX) {
		int64_t *from_ns = &pauses->from_ns[pauses->count];
		int64_t *to_ns = &pauses->to_ns[pauses->count++];
		int used = 0;

		if (sscanf(text, "%16" SCNd64 "-%16" SCNd64 "%n", from_ns, to_ns,
			   &used) != 2 ||
		    *from_ns <= before_ns || *to_ns <= *from_ns)
			return false;
		before_ns = *to_ns;
		text += used;
		if (!*text)
			return true;
		if (*text++ != ',')
			return false;
	}
	return false;
}

uint64_t reader_wait(struct conn *conn, uint64_t most)
{
	const struct options *opt = conn->opt;
	const struct pauses *pauses = &opt->read_pause;
	int64_t start_ns = (int64_t)opt->start_ns;
	uint64_t part = opt->read_rate / 8 * TICK_NS / NS_PER_S;

	if (conn->read_ns && !sleep_until(conn->read_ns))
		return 0;
	while (conn->pause < pauses->count &&
	       now_ns() >= start_ns + pauses->from_ns[conn->pause]) {
		alarm_at(FOREVER);
		if (!sleep_until(start_ns + pauses->to_ns[conn->pause++]))
			return 0;
	}
	if (pauses->count)
		alarm_at(conn->pause < pauses->count
				 ? start_ns + pauses->from_ns[conn->pause]
				 : FOREVER);
	if (!opt->read_rate)
		return most;
	if (part < PART_LEAST)
		part = PART_LEAST;
	return part < most ? part : most;
}

void reader_has_read(struct conn *conn, uint64_t bytes)
{
	unsigned __int128 bits = (unsigned __int128)bytes * 8;
	int64_t from_ns = now_ns();

	if (!conn->opt->read_rate)
		return;
	if (conn->read_ns > from_ns - TICK_NS) /* it was only woken late */
		from_ns = conn->read_ns;
	conn->read_ns = from_ns + (int64_t)(bits * NS_PER_S / conn->opt->read_rate);
}
