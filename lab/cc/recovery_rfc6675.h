/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Window reduction of RFC 6675 (before: RFC 3517), section 5: cwnd = ssthresh at
 * once, then data is sent while pipe < cwnd.
 *
 * The segment found lost is retransmitted whatever pipe is (step 4.3): until
 * something was sent in this recovery, the window has room for one segment.
 *
 * Departs from the RFC: loss marking and the order of retransmissions are
 * Linux's, and there is no rescue retransmission (NextSeg, rule 4).
 */
#include "testctl_cc.h"

struct rfc6675_state {
	u32 none;
};

static void rfc6675_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	w->cwnd = w->ssthresh;
	if (!e->sent)
		w->cwnd = cc_max(w->cwnd, e->pipe + 1);
}

static void rfc6675_exit(void *state, const struct cc_event *e, struct cc_window *w)
{
	w->cwnd = w->ssthresh;
}

static const struct cc_recovery rfc6675_recovery = {
	.enter = rfc6675_ack,
	.ack = rfc6675_ack,
	.exit = rfc6675_exit,
};
