/* SPDX-License-Identifier: GPL-2.0 */
/*
 * PIE (RFC 8033): drops or marks arriving packets with a probability that a controller sets every
 * t_update from the queueing delay, and from whether it grows.
 *
 * A probability of 1 is 2^56.  The queueing delay is that of the packet that left last (section
 * 5.2's timestamps), 0 when nothing waits.  Of the RFC's appendix B: burst allowance, the caps, the
 * exponential decay, the derandomisation of section 5.4 and ECN up to `mark_ecnth` (section
 * 5.1); not: bytemode, and switching PIE off while the queue is short.
 */
#ifndef TESTCTL_AQM_PIE_H
#define TESTCTL_AQM_PIE_H

#include "aqm_fifo.h"

enum { PIE_QDELAY_REF, PIE_T_UPDATE, PIE_ALPHA, PIE_BETA, PIE_MAX_BURST, PIE_ECN, PIE_MARK_ECNTH };

#define PIE_ONE (1ULL << 56)
#define PIE_GAIN_UNIT 1000	/* alpha and beta in 1/1000 Hz */
#define PIE_MOST_GAIN 100000
#define PIE_LONGEST_NS (10 * NSEC_PER_SEC)
#define PIE_FEW_PACKETS 2	/* of the MTU: a queue no longer is left alone */

struct pie {
	struct fifo fifo;
	u64 probability;
	u64 accumulated;
	u64 delay_ns;
	u64 old_delay_ns;
	s64 burst_ns;
};

static int pie_check(const struct port_options *options)
{
	const u64 *word = options->word;

	if (!word[PIE_QDELAY_REF] || word[PIE_QDELAY_REF] > PIE_LONGEST_NS || word[PIE_MAX_BURST] > PIE_LONGEST_NS ||
	    word[PIE_ECN] > 1 || word[PIE_MARK_ECNTH] > PIE_ONE)
		return -EINVAL;
	if (word[PIE_T_UPDATE] < NSEC_PER_USEC || word[PIE_T_UPDATE] > PIE_LONGEST_NS)
		return -EINVAL;
	return word[PIE_ALPHA] > PIE_MOST_GAIN || word[PIE_BETA] > PIE_MOST_GAIN ? -EINVAL : 0;
}

static void pie_begin(struct lab_port *port)
{
	struct pie *p = port_state(port);

	p->burst_ns = port_options(port)->word[PIE_MAX_BURST];
	fifo_begin(port);
}

/* gain * delay, as a probability */
static s64 pie_term(u64 gain, s64 delay_ns)
{
	s64 limited = clamp_t(s64, delay_ns, -(s64)PIE_LONGEST_NS, PIE_LONGEST_NS);

	limited = div_s64(limited * (s64)gain, PIE_GAIN_UNIT);
	return clamp_t(s64, limited, -2 * (s64)NSEC_PER_SEC, 2 * (s64)NSEC_PER_SEC) * (s64)(PIE_ONE / NSEC_PER_SEC);
}

/* RFC 8033, section 4.2: the smaller the probability, the smaller its steps. */
static s64 pie_scaled(u64 probability, s64 change)
{
	static const struct { u32 one_in, divisor; } steps[] = {
		{ 1000000, 2048 }, { 100000, 512 }, { 10000, 128 }, { 1000, 32 }, { 100, 8 }, { 10, 2 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		if (probability < PIE_ONE / steps[i].one_in)
			return div_s64(change, steps[i].divisor);
	return change;
}

static void pie_update(struct lab_port *port, u64 now_ns)
{
	const u64 *word = port_options(port)->word;
	struct pie *p = port_state(port);
	u64 delay = p->delay_ns;
	s64 change;

	change = pie_term(word[PIE_ALPHA], (s64)delay - (s64)word[PIE_QDELAY_REF]) +
		 pie_term(word[PIE_BETA], (s64)delay - (s64)p->old_delay_ns);
	change = pie_scaled(p->probability, change);
	if (p->probability >= PIE_ONE / 10)
		change = min_t(s64, change, PIE_ONE / 50);
	p->probability = clamp_t(s64, (s64)p->probability + change, 0, PIE_ONE);
	if (!delay && !p->old_delay_ns)
		p->probability -= p->probability / 50;
	p->burst_ns = max_t(s64, 0, p->burst_ns - (s64)word[PIE_T_UPDATE]);
	if (!p->probability && delay < word[PIE_QDELAY_REF] / 2 && p->old_delay_ns < word[PIE_QDELAY_REF] / 2)
		p->burst_ns = word[PIE_MAX_BURST];
	p->old_delay_ns = delay;
}

static bool pie_drops(struct lab_port *port, struct pie *p)
{
	const u64 *word = port_options(port)->word;

	if (p->burst_ns || (p->old_delay_ns < word[PIE_QDELAY_REF] / 2 && p->probability < PIE_ONE / 5) ||
	    p->fifo.queue.bytes <= PIE_FEW_PACKETS * port_largest(port))
		return false;
	if (!p->probability)
		p->accumulated = 0;
	p->accumulated += p->probability;
	if (p->accumulated < PIE_ONE / 100 * 85)
		return false;
	if (p->accumulated < PIE_ONE / 2 * 17 && port_random(port) >> 8 >= p->probability)
		return false;
	p->accumulated = 0;
	return true;
}

static void pie_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	const u64 *word = port_options(port)->word;
	struct pie *p = port_state(port);

	if (pie_drops(port, p) &&
	    !(word[PIE_ECN] && p->probability <= word[PIE_MARK_ECNTH] && port_mark(port, skb)))
		port_drop(port, skb);
	else
		queue_put(port, &p->fifo.queue, skb);
}

static struct sk_buff *pie_leave(struct lab_port *port, u64 now_ns)
{
	struct pie *p = port_state(port);
	struct sk_buff *skb = queue_take(port, &p->fifo.queue);

	p->delay_ns = skb && p->fifo.queue.bytes ? now_ns - port_packet(skb)->ns : 0;
	return skb;
}

static const struct aqm aqm_pie = {
	.state_bytes = sizeof(struct pie),
	.check = pie_check,
	.begin = pie_begin,
	.end = fifo_end,
	.arrive = pie_arrive,
	.leave = pie_leave,
	.update = pie_update,
	.update_word = PIE_T_UPDATE,
};

#endif
