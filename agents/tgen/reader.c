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

/* When the receive buffer is to be set again; FOREVER: it was, or is not to be. */
static int64_t resize_ns(const struct conn *conn)
{
	const struct options *opt = conn->opt;

	if (conn->resized || !opt->resize_bytes)
		return FOREVER;
	return (int64_t)opt->start_ns + (int64_t)opt->resize_ns;
}

/* Sleeps, and sets the receive buffer meanwhile if that is due. */
static bool sleep_on(struct conn *conn, int64_t until_ns)
{
	int64_t at_ns = resize_ns(conn);

	if (at_ns <= until_ns) {
		if (!sleep_until(at_ns))
			return false;
		conn->resized = true;
		socket_resize(conn, conn->opt->resize_bytes);
	}
	return sleep_until(until_ns);
}

static int64_t pause_ns(const struct conn *conn)
{
	const struct pauses *pauses = &conn->opt->read_pause;

	if (conn->pause == pauses->count)
		return FOREVER;
	return (int64_t)conn->opt->start_ns + pauses->from_ns[conn->pause];
}

uint64_t reader_wait(struct conn *conn, uint64_t most)
{
	const struct options *opt = conn->opt;
	const struct pauses *pauses = &opt->read_pause;
	uint64_t part = opt->read_rate / 8 * TICK_NS / NS_PER_S;

	if (pauses->count || opt->resize_bytes)
		alarm_at(FOREVER);
	if (conn->read_ns && !sleep_on(conn, conn->read_ns))
		return 0;
	while (pause_ns(conn) != FOREVER && now_ns() >= pause_ns(conn))
		if (!sleep_on(conn,
			      (int64_t)opt->start_ns + pauses->to_ns[conn->pause++]))
			return 0;
	if (resize_ns(conn) != FOREVER && now_ns() >= resize_ns(conn))
		sleep_on(conn, resize_ns(conn));
	if (pauses->count || opt->resize_bytes)
		alarm_at(pause_ns(conn) < resize_ns(conn) ? pause_ns(conn)
							  : resize_ns(conn));
	if (!opt->read_rate)
		return most;
	if (part < PART_LEAST)
		part = PART_LEAST;
	return part < most ? part : most;
}

void reader_has_read(struct conn *conn, uint64_t bytes)
{
	unsigned __int128 bits = (unsigned __int128)bytes * 8;
	int64_t from_ns;

	if (!conn->opt->read_rate)
		return;
	from_ns = now_ns(); /* which moves virtual time: no reader at full speed asks */
	if (conn->read_ns > from_ns - TICK_NS) /* it was only woken late */
		from_ns = conn->read_ns;
	conn->read_ns = from_ns + (int64_t)(bits * NS_PER_S / conn->opt->read_rate);
}
