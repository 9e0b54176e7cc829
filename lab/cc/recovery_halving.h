/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate halving as Linux had it before 3.2: the window falls by one for every two
 * ACKs, not below ssthresh, and never exceeds pipe + 1, so that one segment is
 * sent for every two ACKs; at the end cwnd = min(cwnd, ssthresh).
 *
 * It counts ACKs, not what they deliver, and halves whatever the growth wants.
 * Source: "Proportional Rate Reduction for TCP" (IMC 2011), section 3.2.
 *
 * Departs from Linux 3.1 and before: Reno's floor there was ssthresh / 2.
 */
#include "testctl_cc.h"

struct halving_state {
	u32 odd; /* ACKs that have not yet lowered the window: 0 or 1 */
};

static void halving_enter(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct halving_state *s = state;

	s->odd = 0;
	w->cwnd = cc_min(w->cwnd, e->pipe + 1);
}

static void halving_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct halving_state *s = state;

	s->odd ^= 1;
	if (!s->odd && w->cwnd > w->ssthresh)
		w->cwnd--;
	w->cwnd = cc_min(w->cwnd, e->pipe + 1);
}

static void halving_exit(void *state, const struct cc_event *e, struct cc_window *w)
{
	w->cwnd = cc_min(w->cwnd, w->ssthresh);
}

static const struct cc_recovery halving_recovery = {
	.enter = halving_enter,
	.ack = halving_ack,
	.exit = halving_exit,
};
