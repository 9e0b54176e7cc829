// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-AdaptiveReno: Shimonishi, Hama, Murase, "TCP-Adaptive Reno for Improving
 * Efficiency-Friendliness Tradeoffs of TCP Congestion Control Algorithm"
 * (PFLDnet 2006; also GLOBECOM 2005).
 *
 *	congestion level  c = min(1, (RTT - RTTmin) / (RTTcong - RTTmin))
 *	at a loss         RTTcong = 0.85 RTTcong + 0.15 RTT
 *	                  W = Wbase = W / (1 + c), Wprobe = 0
 *	per segment acked Wbase += 1 / W, Wprobe = max(Wprobe + (Winc - 1) / W, 0)
 *	cwnd              W = Wbase + Wprobe
 *	with  Winc(c) = Wm / e^(alpha c) + beta c + gamma,  alpha = 10
 *	      beta    = 2 Wm (1/alpha - (1/alpha + 1) / e^alpha)
 *	      gamma   = 1 - 2 Wm (1/alpha - (1/alpha + 1/2) / e^alpha)
 *	      Wm      = B / M, M = 1000, B the bandwidth in segments/s
 *
 * Winc(1) = 1 and its mean over c is 1, so it is the growth of the whole window
 * per RTT: Reno's when there is congestion, Wm more than Reno's without.  The
 * slides say that Wprobe neither grows nor falls at c = 1 and that the whole is
 * then "just like Reno", so what Wprobe gets is Winc less the 1 of Wbase.
 *
 * Fixed point: windows 2^-20 segment, c and Winc 2^-16.  e^(-10 c) is 2^(-k - f)
 * with a polynomial of degree 3 for 2^-f (error below 2e-4).
 *
 * Departs from the paper:
 * - RTT is the least sample of the last one to two round trips, and RTTcong -
 *   RTTmin counts as at least RTTmin / 32: a flow's own bursts queue for a
 *   moment on a link that is mostly idle, and where no loss comes from
 *   congestion RTTcong is within that of RTTmin, so that c would be noise.  A
 *   loss in slow start, whose queue is younger than that, takes the last sample;
 * - c at a loss is taken before RTTcong moves; the first loss of a connection
 *   sets RTTcong, so it is Reno's halving unless there is hardly a queue;
 * - until then c, for growth, counts as 1 (Reno);
 * - B is what was delivered over the last RTT, averaged with weight 1/8;
 * - Wm is at most 2^16 segments, and Winc never takes from Wbase;
 * - a congestion mark (ECE) counts as c = 1.
 */
#include "testctl_cc.h"

#define ARENO_WINDOW_SHIFT 20
#define ARENO_SHIFT	   16
#define ARENO_ONE	   (1U << ARENO_SHIFT)
#define ARENO_NOISE_SHIFT  5
#define ARENO_M		   1000
#define ARENO_WM_MAX	   (1U << 16)

struct areno_state {
	u64 base; /* Wbase and Wprobe, segments << ARENO_WINDOW_SHIFT */
	u64 probe;
	u64 since_us; /* when the RTT over which B is measured began */
	u32 since_delivered;
	u32 rate; /* B, segments/s; 0: not yet known */
	u32 rtt_us; /* the last sample */
	u32 rtt_now_us; /* the least of this round trip */
	u32 rtt_last_us; /* the least of the one before */
	u32 rtt_min_us;
	u32 rtt_cong_us; /* 0: no loss yet */
};

/* RTT as c wants it: without what the flow's own bursts add. */
static __always_inline u32 areno_rtt(const struct areno_state *s)
{
	return cc_min(s->rtt_now_us, s->rtt_last_us);
}

/* c of an RTT, 2^-16 */
static __always_inline u32 areno_level(const struct areno_state *s, u32 rtt_us)
{
	u32 above, range = s->rtt_min_us >> ARENO_NOISE_SHIFT;

	if (rtt_us <= s->rtt_min_us)
		return 0;
	above = rtt_us - s->rtt_min_us;
	if (s->rtt_cong_us > s->rtt_min_us)
		range = cc_max(s->rtt_cong_us - s->rtt_min_us, range);
	return above >= range ? ARENO_ONE : (u32)cc_div((u64)above << ARENO_SHIFT, range);
}

/* e^(-10 c), 2^-16 */
static __always_inline u32 areno_decay(u32 c)
{
	/* 10 log2(e) = 14.426950409, 2^-16 */
	u64 power = ((u64)c * 945485) >> ARENO_SHIFT;
	u64 whole = power >> ARENO_SHIFT, f = power & (ARENO_ONE - 1);
	/* 2^-f = 1 - 0.6931 f + 0.2402 f^2 - 0.0555 f^3 + 0.0084 f^4, so that f = 1 gives 1/2 */
	s64 value = 551;

	value = -3638 + ((value * (s64)f) >> ARENO_SHIFT);
	value = 15744 + ((value * (s64)f) >> ARENO_SHIFT);
	value = -45425 + ((value * (s64)f) >> ARENO_SHIFT);
	value = ARENO_ONE + ((value * (s64)f) >> ARENO_SHIFT);
	return (u32)(value >> whole);
}

/*
 * Winc(c) - 1, segments per RTT, 2^-16; wm in 2^-16 segments.
 * gamma - 1 = -(beta + Wm / e^alpha), so that it is exactly 0 at c = 1.
 */
static __always_inline s64 areno_increase(u64 wm, u32 c)
{
	/* beta = 0.19990012 Wm; 2^-20 */
	s64 beta = (s64)((wm * 209610) >> 20);
	s64 least = (s64)((wm * areno_decay(ARENO_ONE)) >> ARENO_SHIFT);
	s64 most = (s64)((wm * areno_decay(c)) >> ARENO_SHIFT);

	return most - least - (s64)(((u64)beta * (ARENO_ONE - c)) >> ARENO_SHIFT);
}

/* W / (1 + c) */
static __always_inline u32 areno_reduced(u32 window, u32 c)
{
	return (u32)cc_div((u64)window << ARENO_SHIFT, ARENO_ONE + c);
}

static void areno_sample(void *state, const struct cc_event *e)
{
	struct areno_state *s = state;
	u64 elapsed_us = e->now_us - s->since_us, rate;

	s->rtt_us = e->rtt_us;
	if (!s->rtt_min_us || e->rtt_us < s->rtt_min_us)
		s->rtt_min_us = e->rtt_us;
	if (!s->since_us)
		s->rtt_now_us = e->rtt_us;
	s->rtt_now_us = cc_min(s->rtt_now_us, e->rtt_us);
	if (s->since_us && elapsed_us < s->rtt_us)
		return;
	s->rtt_last_us = s->rtt_now_us;
	s->rtt_now_us = e->rtt_us;
	if (s->since_us && elapsed_us) {
		rate = cc_div((u64)(e->delivered - s->since_delivered) * 1000000, elapsed_us);
		if (rate > 0x7fffffff)
			rate = 0x7fffffff;
		s->rate = s->rate ? (u32)((7 * (u64)s->rate + rate) >> 3) : (u32)rate;
	}
	s->since_us = e->now_us;
	s->since_delivered = e->delivered;
}

static void areno_ack(void *state, const struct cc_event *e, struct cc_window *w)
{
	struct areno_state *s = state;
	u32 acked, c;
	u64 wm, steps;
	s64 probe;

	/* What others did to the window (a timeout, an idle period, an undo) is taken over. */
	if (w->cwnd != (s->base + s->probe) >> ARENO_WINDOW_SHIFT) {
		s->base = (u64)w->cwnd << ARENO_WINDOW_SHIFT;
		s->probe = 0;
	}
	if (!e->limited || !w->cwnd)
		return;
	acked = cc_slow_start(e, w);
	if (!acked) {
		s->base = (u64)w->cwnd << ARENO_WINDOW_SHIFT;
		s->probe = 0;
		return;
	}
	if (w->cwnd > (s->base + s->probe) >> ARENO_WINDOW_SHIFT)
		s->base = ((u64)w->cwnd << ARENO_WINDOW_SHIFT) - s->probe;
	c = s->rtt_cong_us ? areno_level(s, areno_rtt(s)) : ARENO_ONE;
	wm = cc_div((u64)s->rate << ARENO_SHIFT, ARENO_M);
	if (wm > (u64)ARENO_WM_MAX << ARENO_SHIFT)
		wm = (u64)ARENO_WM_MAX << ARENO_SHIFT;
	/* 1 / W for each segment, rounded up: W of them make 1 */
	steps = cc_div(((u64)acked << ARENO_WINDOW_SHIFT) + w->cwnd - 1, w->cwnd);
	s->base += steps;
	probe = (s64)s->probe + ((areno_increase(wm, c) * (s64)steps) >> ARENO_SHIFT);
	s->probe = probe > 0 ? (u64)probe : 0;
	w->cwnd = (u32)((s->base + s->probe) >> ARENO_WINDOW_SHIFT);
}

static __always_inline u32 areno_reduce(struct areno_state *s, u32 window, u32 rtt_us, u32 c)
{
	u32 after = cc_max(areno_reduced(window, c), CC_MIN_SSTHRESH);

	if (!s->rtt_cong_us)
		s->rtt_cong_us = rtt_us;
	else
		s->rtt_cong_us = (u32)cc_div(17 * (u64)s->rtt_cong_us + 3 * (u64)rtt_us, 20);
	s->base = (u64)after << ARENO_WINDOW_SHIFT;
	s->probe = 0;
	return after;
}

static u32 areno_loss(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct areno_state *s = state;
	u32 rtt_us = w->cwnd < w->ssthresh ? s->rtt_us : areno_rtt(s);

	return areno_reduce(s, w->cwnd, rtt_us, areno_level(s, rtt_us));
}

static u32 areno_ecn(void *state, const struct cc_event *e, const struct cc_window *w)
{
	struct areno_state *s = state;

	return areno_reduce(s, w->cwnd, areno_rtt(s), ARENO_ONE);
}

static const struct cc_growth areno_growth = {
	.sample = areno_sample,
	.ack = areno_ack,
	.loss = areno_loss,
	.ecn = areno_ecn,
};

TESTCTL_CC(areno, areno)
