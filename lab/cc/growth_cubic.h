/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Growth of CUBIC: RFC 9438.
 *
 *	W_cubic(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd_epoch) / C),  C = 0.4
 *	congestion avoidance  cwnd += acked (target - cwnd) / cwnd,
 *	                      target = W_cubic(t + RTT) within [cwnd, 1.5 cwnd]
 *	Reno-friendly         W_est += acked alpha / cwnd,  alpha = 3 (1 - beta) / (1 + beta),
 *	                      1 once W_est has reached the window before the loss
 *	loss                  ssthresh = beta FlightSize,  beta = 0.7
 *	fast convergence      W_max = cwnd (1 + beta) / 2 if the loss came below the last W_max
 *
 * Fixed point: time in 2^-10 s; windows in segments, W_est and the fraction of
 * cwnd in 2^-20 segment.
 *
 * Departs from the RFC: no HyStart, which it leaves open.  Departs from Linux's
 * tcp_cubic: FlightSize, not cwnd, is reduced (as in growth_reno.h); beta is 0.7,
 * not 717/1024.
 */
#include "testctl_cc.h"

#define CUBIC_SHIFT	20
#define CUBIC_FAR	(1U << 20) /* 1024 s: farther than that from K the cube is not followed */
#define CUBIC_ALPHA	555090 /* 3 * 0.3 / 1.7, 2^-20 */
#define CUBIC_TIME(us)	((((u64)(us)) << 10) / 1000000)
#define CUBIC_ROOT_BITS 21

struct cubic_state {
	u64 epoch_us; /* when this congestion avoidance began; 0: not yet */
	u64 est; /* W_est << CUBIC_SHIFT */
	u32 fraction; /* of cwnd, << CUBIC_SHIFT */
	u32 w_max;
	u32 prior; /* the window before the last loss */
	u32 k; /* 2^-10 s */
	u32 origin; /* W_cubic(K) */
	u32 idle; /* data was sent after an idle period: the epoch starts again */
};

/* The largest x with x^3 <= value, for value < 2^63. */
static __always_inline u32 cubic_root(u64 value)
{
	u64 root = 0;
	int bit;

	for (bit = CUBIC_ROOT_BITS - 1; bit >= 0; bit--) {
		u64 next = root | (1ULL << bit);

		if (next * next * next <= value)
			root = next;
	}
	return (u32)root;
}

static __always_inline void cubic_begin(struct cubic_state *s, u64 now_us, u32 cwnd)
{
	u64 below;

	s->epoch_us = now_us ? now_us : 1;
	s->fraction = 0;
	s->est = (u64)cwnd << CUBIC_SHIFT;
	s->k = 0;
	s->origin = cwnd;
	if (s->w_max > cwnd) {
		below = s->w_max - cwnd;
		if (below > 1U << 31)
			below = 1U << 31;
		/* cbrt(below / 0.4) in 2^-10 s */
		s->k = cubic_root((below << 30) / 2 * 5);
		s->origin = s->w_max;
	}
}

/* W_cubic at a time after the epoch began, 2^-10 s. */
static __always_inline u32 cubic_window(const struct cubic_state *s, u64 time)
{
	u64 far = time > s->k ? time - s->k : s->k - time, cube;

	if (far > CUBIC_FAR)
		far = CUBIC_FAR;
	cube = ((far * far * far) / 5 * 2) >> 30;
	if (time > s->k)
		return cc_min(s->origin + (u32)cube, 1U << 30);
	return cube < s->origin ? s->origin - (u32)cube : 0;
}

static void cubic_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct cubic_state *s = state;
	u32 acked, target, est;
	u64 more;

	if (!e->limited)
		return;
	acked = cc_slow_start(e, w);
	if (!acked || !w->cwnd)
		return;
	if (!s->epoch_us || s->idle)
		cubic_begin(s, e->now_us, w->cwnd);
	s->idle = 0;
	target = cubic_window(s, CUBIC_TIME(e->now_us - s->epoch_us + e->srtt_us));
	target = cc_max(cc_min(target, w->cwnd + w->cwnd / 2), w->cwnd);
	more = cc_div(((u64)(target - w->cwnd) << CUBIC_SHIFT) * acked, w->cwnd) + s->fraction;
	s->est += cc_div((u64)acked * ((s->est >> CUBIC_SHIFT) < s->prior ? CUBIC_ALPHA : 1U << CUBIC_SHIFT),
			 w->cwnd);
	w->cwnd += (u32)(more >> CUBIC_SHIFT);
	s->fraction = (u32)more & ((1U << CUBIC_SHIFT) - 1);
	est = (u32)(s->est >> CUBIC_SHIFT);
	if (est > w->cwnd)
		w->cwnd = est;
}

static u32 cubic_loss(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct cubic_state *s = state;

	s->epoch_us = 0;
	s->prior = w->cwnd;
	s->w_max = w->cwnd < s->w_max ? (u32)((u64)w->cwnd * 17 / 20) : w->cwnd;
	return cc_max((u32)((u64)e->flight * 7 / 10), CC_MIN_SSTHRESH);
}

static void cubic_timeout(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct cubic_state *s = state;

	s->epoch_us = 0;
}

static void cubic_restart(void *state, const struct cc_event *e)
{
	struct cubic_state *s = state;

	s->idle = 1;
}

static const struct cc_growth cubic_growth = {
	.ack = cubic_ack,
	.loss = cubic_loss,
	.timeout = cubic_timeout,
	.restart = cubic_restart,
};
