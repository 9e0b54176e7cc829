/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DualPI2 (RFC 9332, appendix A): a queue L for packets that come with ECT(1) or CE, a queue C for
 * all others, and one controller, whose base probability p' marks both.
 *
 *	p'   = p' + alpha * (delay - target) + beta * (delay - old_delay)	every tupdate, from 0 to 1
 *	p_C  = p'^2						drops in C, or marks ECT(0)
 *	p_CL = k * p'
 *	p_L  = max(p_CL, (wait - min_th) / range)		marks in L
 *	p_C  once p_CL reaches 1: drops in both queues, ECN or not (appendix A.2)
 *
 * A probability of 1 is 2^56.  `delay` is the longer of the times for which the packets at the heads
 * have waited, `wait` that of the packet which leaves; the ramp is 0 while no more than th_len packets
 * wait behind it in L.  What the RFC's recur() counts begins for each queue at a number drawn from the
 * seed.  With a range of 0 the ramp is a step: all that waited longer than min_th are marked.
 *
 * The RFC leaves the scheduler open.  This is a weighted round robin by bytes with one credit: its sign
 * says whose turn it is while both queues have packets, and at first it is L's; C gets the share
 * `weight`.  What is dropped takes no turn.
 *
 * With DUALPI2_COARSE it is Linux's, for comparison: probabilities have 32 bits and are compared with
 * random numbers, alpha and beta are in 1/256 Hz and the PI controller counts in 64 ns, nothing is
 * coupled while fewer bytes than two packets of the MTU wait, and p_L is p_CL alone, after which a
 * packet that waited longer than min_th is marked.
 */
#ifndef TESTCTL_AQM_DUALPI2_H
#define TESTCTL_AQM_DUALPI2_H

#include "aqm_fifo.h"

enum { DUALPI2_TARGET, DUALPI2_TUPDATE, DUALPI2_ALPHA, DUALPI2_BETA, DUALPI2_K,
       DUALPI2_MIN_TH, DUALPI2_RANGE, DUALPI2_TH_LEN, DUALPI2_WEIGHT };

#define DUALPI2_COARSE (PORT_WORDS - 1)	/* not a parameter of any plan */
#define DUALPI2_ONE (1ULL << 56)
#define DUALPI2_GAIN_UNIT 1000	/* alpha and beta in 1/1000 Hz */
#define DUALPI2_MOST_GAIN 100000
#define DUALPI2_LONGEST_NS (10 * NSEC_PER_SEC)
#define DUALPI2_MOST_K 16
#define DUALPI2_MOST_PACKETS 1000000
#define DUALPI2_ALL 10000	/* weights in 1/10000 */
#define DUALPI2_COARSE_SHIFT 6

enum dualpi2_name { DUALPI2_L, DUALPI2_C, DUALPI2_QUEUES };

struct dualpi2 {
	struct sk_buff_head queue[DUALPI2_QUEUES];
	u64 count[DUALPI2_QUEUES];	/* of recur() */
	u64 base;			/* p'; coarse: of 32 bits */
	u64 old_delay_ns;
	s64 credit;			/* above 0: C's turn */
};

static int dualpi2_check(const struct port_options *options)
{
	const u64 *word = options->word;

	if (!word[DUALPI2_TARGET] || word[DUALPI2_TARGET] > DUALPI2_LONGEST_NS || word[DUALPI2_MIN_TH] > DUALPI2_LONGEST_NS ||
	    word[DUALPI2_RANGE] > DUALPI2_LONGEST_NS)
		return -EINVAL;
	if (word[DUALPI2_TUPDATE] < NSEC_PER_USEC || word[DUALPI2_TUPDATE] > DUALPI2_LONGEST_NS)
		return -EINVAL;
	if (word[DUALPI2_ALPHA] > DUALPI2_MOST_GAIN || word[DUALPI2_BETA] > DUALPI2_MOST_GAIN)
		return -EINVAL;
	if (!word[DUALPI2_K] || word[DUALPI2_K] > DUALPI2_MOST_K || word[DUALPI2_TH_LEN] > DUALPI2_MOST_PACKETS)
		return -EINVAL;
	return !word[DUALPI2_WEIGHT] || word[DUALPI2_WEIGHT] >= DUALPI2_ALL || word[DUALPI2_COARSE] > 1 ? -EINVAL : 0;
}

static void dualpi2_new_credit(struct lab_port *port, struct dualpi2 *d)
{
	s64 of_c = port->options.word[DUALPI2_WEIGHT];

	d->credit = (s64)port_largest(port) * (of_c - (DUALPI2_ALL - of_c));
}

static void dualpi2_begin(struct lab_port *port)
{
	struct dualpi2 *d = port->state;
	u32 i;

	for (i = 0; i < DUALPI2_QUEUES; i++) {
		__skb_queue_head_init(&d->queue[i]);
		if (!port->options.word[DUALPI2_COARSE])
			d->count[i] = testctl_random_next(&port->random) >> 8;
	}
	dualpi2_new_credit(port, d);
}

static void dualpi2_end(struct lab_port *port)
{
	struct dualpi2 *d = port->state;
	u32 i;

	for (i = 0; i < DUALPI2_QUEUES; i++)
		__skb_queue_purge(&d->queue[i]);
}

/* The packet's ECN field; of what is not IP: none. */
static u8 dualpi2_ecn(struct sk_buff *skb)
{
	int field = skb_get_dsfield(skb);

	return field < 0 ? INET_ECN_NOT_ECT : field & INET_ECN_MASK;
}

static void dualpi2_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	struct dualpi2 *d = port->state;

	__skb_queue_tail(&d->queue[dualpi2_ecn(skb) & INET_ECN_ECT_1 ? DUALPI2_L : DUALPI2_C], skb);
}

/* For how long the packet at the head has waited; 0: there is none. */
static u64 dualpi2_head_ns(const struct sk_buff_head *queue, u64 now_ns)
{
	const struct sk_buff *skb = skb_peek(queue);

	return skb ? now_ns - port_packet(skb)->ns : 0;
}

/* gain * delay, as a probability */
static s64 dualpi2_term(u64 gain, s64 delay_ns)
{
	s64 limited = clamp_t(s64, delay_ns, -(s64)DUALPI2_LONGEST_NS, DUALPI2_LONGEST_NS);

	limited = div_s64(limited * (s64)gain, DUALPI2_GAIN_UNIT);
	limited = clamp_t(s64, limited, -2 * (s64)NSEC_PER_SEC, 2 * (s64)NSEC_PER_SEC);
	return limited * (s64)(DUALPI2_ONE / NSEC_PER_SEC);
}

/* gain / 256 Hz for 64 ns, as a probability of 32 bits */
static u32 dualpi2_coarse_gain(u64 gain)
{
	return div_u64(gain * U32_MAX >> (8 - DUALPI2_COARSE_SHIFT), NSEC_PER_SEC);
}

static u32 dualpi2_coarse_base(const struct dualpi2 *d, const u64 *word, u64 delay)
{
	s64 change = ((s64)delay - (s64)word[DUALPI2_TARGET]) * dualpi2_coarse_gain(word[DUALPI2_ALPHA]) +
		     ((s64)delay - (s64)d->old_delay_ns) * dualpi2_coarse_gain(word[DUALPI2_BETA]);
	u32 base = d->base, next;

	if (change > 0) {
		next = base + (u32)((u64)change >> DUALPI2_COARSE_SHIFT);
		return next < base ? U32_MAX : next;
	}
	next = base - (u32)((u64)-change >> DUALPI2_COARSE_SHIFT);
	return next > base ? 0 : next;
}

static void dualpi2_update(struct lab_port *port, u64 now_ns)
{
	const u64 *word = port->options.word;
	struct dualpi2 *d = port->state;
	u64 delay = max(dualpi2_head_ns(&d->queue[DUALPI2_L], now_ns), dualpi2_head_ns(&d->queue[DUALPI2_C], now_ns));
	s64 change;

	if (word[DUALPI2_COARSE]) {
		d->base = dualpi2_coarse_base(d, word, delay);
	} else {
		change = dualpi2_term(word[DUALPI2_ALPHA], (s64)delay - (s64)word[DUALPI2_TARGET]) +
			 dualpi2_term(word[DUALPI2_BETA], (s64)delay - (s64)d->old_delay_ns);
		d->base = clamp_t(s64, (s64)d->base + change, 0, DUALPI2_ONE);
	}
	d->old_delay_ns = delay;
}

/* RFC 9332, appendix A.1: true as often as it is likely, at even distances. */
static bool dualpi2_recur(struct dualpi2 *d, enum dualpi2_name name, u64 likelihood)
{
	d->count[name] += min(likelihood, DUALPI2_ONE);
	if (d->count[name] < DUALPI2_ONE)
		return false;
	d->count[name] -= DUALPI2_ONE;
	return true;
}

/* laqm() */
static u64 dualpi2_ramp(const u64 *word, u64 wait_ns)
{
	u64 over = wait_ns > word[DUALPI2_MIN_TH] ? wait_ns - word[DUALPI2_MIN_TH] : 0;

	if (!over || over >= word[DUALPI2_RANGE])
		return over ? DUALPI2_ONE : 0;
	return mul_u64_u64_div_u64(over, DUALPI2_ONE, word[DUALPI2_RANGE]);
}

/* Whether the packet, which has been taken from its queue, is to be dropped; it is marked here. */
static bool dualpi2_drops(struct lab_port *port, struct dualpi2 *d, enum dualpi2_name name, struct sk_buff *skb,
			  u64 now_ns)
{
	const u64 *word = port->options.word;
	u64 of_c = mul_u64_u64_shr(d->base, d->base, 56), of_l = word[DUALPI2_K] * d->base;
	bool overload = of_l >= DUALPI2_ONE;

	if (name == DUALPI2_C || overload) {
		if (dualpi2_recur(d, name, of_c))
			return overload || !port_mark(port, skb);
		if (name == DUALPI2_C)
			return false;
	} else if (skb_queue_len(&d->queue[name]) > word[DUALPI2_TH_LEN]) {
		of_l = max(of_l, dualpi2_ramp(word, now_ns - port_packet(skb)->ns));
	}
	if (dualpi2_recur(d, name, of_l))
		port_mark(port, skb);
	return false;
}

static bool dualpi2_roll(struct lab_port *port, u64 probability)
{
	return testctl_random_next(&port->random) >> 32 <= probability;
}

static bool dualpi2_coarse_drops(struct lab_port *port, struct dualpi2 *d, enum dualpi2_name name, struct sk_buff *skb,
				 u64 now_ns)
{
	const u64 *word = port->options.word;
	u64 left = port->bytes - port_bytes(port, skb), of_l = word[DUALPI2_K] * d->base;
	bool overload = of_l > U32_MAX;

	if (left >= 2 * port_largest(port)) {
		if (name == DUALPI2_C || overload) {
			if (dualpi2_roll(port, d->base) && dualpi2_roll(port, d->base))
				return overload || !port_mark(port, skb);
		}
		if (name == DUALPI2_L && (overload || dualpi2_roll(port, of_l)))
			port_mark(port, skb);
	}
	if (name == DUALPI2_L && now_ns - port_packet(skb)->ns > word[DUALPI2_MIN_TH])
		port_mark(port, skb);
	return false;
}

static struct sk_buff *dualpi2_leave(struct lab_port *port, u64 now_ns)
{
	const u64 *word = port->options.word;
	struct dualpi2 *d = port->state;
	bool both, of_l, of_c, drops;
	enum dualpi2_name name;
	struct sk_buff *skb;

	for (;;) {
		of_l = !skb_queue_empty(&d->queue[DUALPI2_L]);
		of_c = !skb_queue_empty(&d->queue[DUALPI2_C]);
		both = of_l && of_c;
		if (!of_l && !of_c) {
			dualpi2_new_credit(port, d);
			return NULL;
		}
		name = of_l && (!of_c || d->credit <= 0) ? DUALPI2_L : DUALPI2_C;
		skb = __skb_dequeue(&d->queue[name]);
		if (word[DUALPI2_COARSE])
			drops = dualpi2_coarse_drops(port, d, name, skb, now_ns);
		else
			drops = dualpi2_drops(port, d, name, skb, now_ns);
		if (!drops)
			break;
		port_drop(port, skb);
	}
	if (both && name == DUALPI2_L)
		d->credit += (s64)word[DUALPI2_WEIGHT] * port_bytes(port, skb);
	else if (both)
		d->credit -= (s64)(DUALPI2_ALL - word[DUALPI2_WEIGHT]) * port_bytes(port, skb);
	return skb;
}

static const struct aqm aqm_dualpi2 = {
	.state_bytes = sizeof(struct dualpi2),
	.check = dualpi2_check,
	.begin = dualpi2_begin,
	.end = dualpi2_end,
	.arrive = dualpi2_arrive,
	.leave = dualpi2_leave,
	.update = dualpi2_update,
	.update_word = DUALPI2_TUPDATE,
};

#endif
