/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Growth of TCP Reno: RFC 5681, with byte counting as in RFC 3465 (L unlimited,
 * as in Linux).
 *
 *	slow start            cwnd += acked
 *	congestion avoidance  cwnd += acked / cwnd
 *	loss                  ssthresh = FlightSize / 2
 *
 * Departs from Linux's tcp_reno, which halves cwnd: FlightSize is what RFC 5681
 * (equation 4) and RFC 6675 halve.  It is snd.nxt - snd.una when the loss is
 * seen, what limited transmit has sent included, as in the example of RFC 6937:
 * 20 segments before the loss are 22 at the third duplicate, and ssthresh is 11.
 */
#include "testctl_cc.h"

struct reno_state {
	u32 count; /* segments acknowledged since cwnd last grew by one */
};

static void reno_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct reno_state *s = state;
	u32 acked;

	if (!e->limited)
		return;
	acked = cc_slow_start(e, w);
	if (!acked || !w->cwnd)
		return;
	s->count += acked;
	if (s->count >= w->cwnd) {
		u32 more = s->count / w->cwnd;

		s->count -= more * w->cwnd;
		w->cwnd += more;
	}
}

static u32 reno_loss(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct reno_state *s = state;

	s->count = 0;
	return cc_max(e->flight / 2, CC_MIN_SSTHRESH);
}

static const struct cc_growth reno_growth = {
	.ack = reno_ack,
	.loss = reno_loss,
};
