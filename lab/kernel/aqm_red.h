/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RED (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", ToN 1993) with Floyd's
 * "gentle", which Linux's RED has not: drops or marks arriving packets by the average of the bytes that wait.
 *
 *	avg = avg + (bytes - avg) * 2^-wq			for each arrival
 *	avg = avg * (1 - 2^-wq)^m				before, if the line was free while m packets of the MTU could be sent
 *	p   = max_p * (avg - min) / (max - min)			from min to max
 *	p   = max_p + (1 - max_p) * (avg - max) / max		from max to 2 * max
 *	drop with p / (1 - count * p)				count: packets since the last drop or mark
 *
 * The average is in bytes with 2^-24 of one; a probability of 1 is 2^32.  What is beyond the last
 * line is dropped, ECN or not.  "bytes" are those of the packet that arrives, too.  A packet that
 * arrives at a free line and is dropped ends an idle time, and the next one begins with it.
 */
#ifndef TESTCTL_AQM_RED_H
#define TESTCTL_AQM_RED_H

#include "aqm_fifo.h"

enum { RED_MIN, RED_MAX, RED_MAX_P, RED_WQ, RED_GENTLE, RED_ECN };

#define RED_ONE (1ULL << 32)
#define RED_FRACTION_BITS 24
#define RED_MOST_BYTES (1ULL << 31)

struct red {
	struct sk_buff_head queue;
	u64 average;
	s64 count;		/* -1: below min */
};

static int red_check(const struct port_options *options)
{
	const u64 *word = options->word;

	if (!word[RED_MIN] || word[RED_MIN] >= word[RED_MAX] || word[RED_MAX] > RED_MOST_BYTES)
		return -EINVAL;
	if (!word[RED_MAX_P] || word[RED_MAX_P] > RED_ONE || word[RED_WQ] > 30)
		return -EINVAL;
	return word[RED_GENTLE] != 1 || word[RED_ECN] > 1 ? -EINVAL : 0;
}

static void red_begin(struct lab_port *port)
{
	((struct red *)port->state)->count = -1;
	fifo_begin(port);
}

/* average * (1 - 2^-wq)^m */
static u64 red_decayed(u64 average, u32 wq, u64 m)
{
	u64 power = RED_ONE - (RED_ONE >> wq);

	for (; m && average; m >>= 1) {
		if (m & 1)
			average = mul_u64_u64_shr(average, power, 32);
		power = power * power >> 32;
	}
	return average;
}

static void red_measure(struct lab_port *port, struct red *r, u64 now_ns)
{
	const struct port_options *options = &port->options;
	u64 bytes = port->bytes << RED_FRACTION_BITS, from = port->idle_from_ns, packet_ns;

	if (from != U64_MAX && options->rate_bps) {
		packet_ns = div64_u64(port_largest(port) * NANOBITS_PER_BYTE, options->rate_bps);
		r->average = red_decayed(r->average, options->word[RED_WQ],
					 div64_u64(now_ns - from, max(packet_ns, 1ULL)));
	}
	r->average += ((s64)bytes - (s64)r->average) >> options->word[RED_WQ];
}

/* RED_ONE: in any case */
static u64 red_probability(u64 average, const u64 *word)
{
	u64 low = word[RED_MIN], high = word[RED_MAX];

	if (average < low)
		return 0;
	if (average < high)
		return div64_u64(word[RED_MAX_P] * (average - low), high - low);
	if (average < 2 * high)
		return word[RED_MAX_P] + div64_u64((RED_ONE - word[RED_MAX_P]) * (average - high), high);
	return RED_ONE;
}

static void red_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	const u64 *word = port->options.word;
	struct red *r = port->state;
	u64 p, passed;

	red_measure(port, r, now_ns);
	p = red_probability(r->average >> RED_FRACTION_BITS, word);
	if (!p) {
		r->count = -1;
		__skb_queue_tail(&r->queue, skb);
		return;
	}
	r->count++;
	passed = p * min_t(u64, r->count, RED_ONE / p + 1);
	if (p < RED_ONE && passed < RED_ONE &&
	    mul_u64_u64_shr(testctl_random_next(&port->random) >> 32, RED_ONE - passed, 32) >= p) {
		__skb_queue_tail(&r->queue, skb);
		return;
	}
	r->count = 0;
	if (p < RED_ONE && word[RED_ECN] && port_mark(port, skb))
		__skb_queue_tail(&r->queue, skb);
	else
		port_drop(port, skb);
}

static const struct aqm aqm_red = {
	.state_bytes = sizeof(struct red),
	.check = red_check,
	.begin = red_begin,
	.end = fifo_end,
	.arrive = red_arrive,
	.leave = fifo_leave,
};

#endif
