/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Proportional rate reduction, RFC 6937, with each of its three bounds.
 *
 *	pipe > ssthresh   sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
 *	otherwise         sndcnt = min(ssthresh - pipe, limit)
 *	  prr      (slow start)    limit = max(prr_delivered - prr_out, DeliveredData) + 1
 *	  prr_crb  (conservative)  limit = prr_delivered - prr_out
 *	  prr_ub   (unlimited)     no limit
 *	cwnd = pipe + sndcnt
 *
 * Departs from the RFC: counts segments, not bytes; the first ACK of a recovery
 * always allows one segment (the fast retransmission), also when it delivers
 * nothing because a timer found the loss.
 * Departs from Linux: the slow-start bound adds its segment on every ACK, not
 * only when snd.una moves without further loss; RecoverFS is snd.nxt - snd.una,
 * not the window before; and the window at the end is what PRR arrived at (at
 * most ssthresh), where Linux sets it to ssthresh.
 */
#include "testctl_cc.h"

struct prr_state {
	u32 delivered; /* prr_delivered */
	u32 recover_fs; /* RecoverFS */
};

enum prr_bound { PRR_SLOW_START, PRR_CONSERVATIVE, PRR_UNLIMITED };

static __always_inline void prr_step(struct prr_state *s, const struct cc_event *e, struct cc_window *w,
				     enum prr_bound bound)
{
	s64 send, limit;

	s->delivered += e->acked;
	if (e->pipe > w->ssthresh) {
		u64 share = (u64)s->delivered * w->ssthresh + s->recover_fs - 1;

		send = (s64)cc_div(share, cc_max(s->recover_fs, 1)) - e->sent;
	} else {
		send = (s64)w->ssthresh - e->pipe;
		limit = (s64)s->delivered - e->sent;
		if (bound == PRR_SLOW_START)
			limit = (limit > e->acked ? limit : e->acked) + 1;
		if (bound != PRR_UNLIMITED && send > limit)
			send = limit;
	}
	if (send < 0)
		send = 0;
	if (!e->sent && !send)
		send = 1;
	w->cwnd = e->pipe + (u32)send;
}

/* The fast retransmission is all that may leave until an ACK comes: a timer can find the loss (RACK). */
static void prr_enter(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct prr_state *s = state;

	s->delivered = 0;
	s->recover_fs = e->flight;
	w->cwnd = cc_min(w->cwnd, e->pipe + 1);
}

static void prr_exit(void *state, const struct cc_event *e, struct cc_window *w)
{
	w->cwnd = cc_min(w->cwnd, w->ssthresh);
}

static void prr_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	prr_step(state, e, w, PRR_SLOW_START);
}

static __maybe_unused void prr_crb_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	prr_step(state, e, w, PRR_CONSERVATIVE);
}

static __maybe_unused void prr_ub_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	prr_step(state, e, w, PRR_UNLIMITED);
}

#define prr_crb_state prr_state
#define prr_ub_state  prr_state
static const struct cc_recovery prr_recovery __maybe_unused = { prr_enter, prr_ack, prr_exit };
static const struct cc_recovery prr_crb_recovery __maybe_unused = { prr_enter, prr_crb_ack, prr_exit };
static const struct cc_recovery prr_ub_recovery __maybe_unused = { prr_enter, prr_ub_ack, prr_exit };
