// SPDX-License-Identifier: GPL-2.0
/*
 * NAME: what it is for, and the paper or RFC it follows.
 *
 *	slow start            cwnd += acked
 *	congestion avoidance  cwnd += acked / cwnd
 *	loss                  ssthresh = cwnd / 2
 *
 * Departs from the paper: say here how.
 */
#include "testctl_cc.h"

/* What is remembered of a connection: zeros at its start, at most 72 bytes. */
struct NAME_state {
	u32 count; /* segments acknowledged since cwnd last grew by one */
};

/* Data was acknowledged, and the window may grow. */
static void NAME_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct NAME_state *s = state;

	if (!e->limited)
		return;
	s->count += cc_slow_start(e, w);
	if (s->count >= w->cwnd) {
		s->count -= w->cwnd;
		w->cwnd++;
	}
}

/* A loss or a mark, once a window: the new ssthresh. */
static u32 NAME_loss(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct NAME_state *s = state;

	s->count = 0;
	return cc_max(w->cwnd / 2, CC_MIN_SSTHRESH);
}

static const struct cc_growth NAME_growth = {
	.ack = NAME_ack,
	.loss = NAME_loss,
};

TESTCTL_CC(NAME, NAME)
