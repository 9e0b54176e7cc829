/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CoDel (RFC 8289): drops or marks at the head of the queue when packets have waited longer than
 * `target` for an `interval`, then ever more often, by the square root of how many it has dropped.
 *
 * Times are nanoseconds, and interval / sqrt(count) is rounded down to one.
 *
 * With CODEL_COARSE it is Linux's CoDel, for comparison: times are in units of 1024 ns, 1 / sqrt(count)
 * has 16 bits, of which one step of Newton's method gives the next, the first drop comes later than
 * one interval, where the RFC has "not sooner", and times have 32 bits, by which a queue that has not
 * dropped yet may seem to have dropped a moment ago.
 *
 * Beyond the RFC's pseudocode: a packet that can be marked is marked in place of each drop, and
 * then is the packet that leaves.
 */
#ifndef TESTCTL_AQM_CODEL_H
#define TESTCTL_AQM_CODEL_H

#include "lab_port.h"

enum { CODEL_TARGET, CODEL_INTERVAL, CODEL_ECN };

#define CODEL_COARSE (PORT_WORDS - 1)	/* not a parameter of any plan */
#define CODEL_LONGEST_NS (4 * NSEC_PER_SEC)	/* its square has 64 bits */
#define CODEL_COARSE_SHIFT 10
#define CODEL_ROOT_BITS 16
#define CODEL_REUSE_INTERVALS 16	/* RFC 8289, section 5.5 */

struct codel {
	u64 target;		/* ns, or units of 1024 ns */
	u64 interval;
	u64 largest_bytes;	/* so many may always wait: a packet of the largest size */
	bool ecn;
	bool coarse;
	bool of_port;		/* "bytes in the queue" are all of the port, as in Linux's FQ-CoDel */
	bool dropping;
	u32 count;
	u32 last_count;
	u16 root;		/* coarse: 2^16 / sqrt(count) */
	u64 first_above;	/* 0: not above */
	u64 drop_next;
};

struct codel_port {
	struct codel codel;
	struct port_queue queue;
};

static int codel_check(const struct port_options *options)
{
	const u64 *word = options->word;

	if (!word[CODEL_TARGET] || word[CODEL_TARGET] >= word[CODEL_INTERVAL] || word[CODEL_INTERVAL] > CODEL_LONGEST_NS)
		return -EINVAL;
	return word[CODEL_ECN] > 1 || word[CODEL_COARSE] > 1 ? -EINVAL : 0;
}

static void codel_init(struct codel *c, const struct lab_port *port)
{
	const u64 *word = port_options(port)->word;
	u32 shift = word[CODEL_COARSE] ? CODEL_COARSE_SHIFT : 0;

	*c = (struct codel){
		.target = word[CODEL_TARGET] >> shift,
		.interval = word[CODEL_INTERVAL] >> shift,
		.largest_bytes = port_largest(port),
		.ecn = word[CODEL_ECN],
		.coarse = word[CODEL_COARSE],
	};
}

/* y' = y * (3 - count * y * y) / 2, y of 16 bits as a fraction of 32. */
static void codel_next_root(struct codel *c)
{
	u64 y = (u64)c->root << (32 - CODEL_ROOT_BITS), square = y * y >> 32;
	u64 rest = (3ULL << 32) - (u64)c->count * square;

	c->root = ((rest >> 2) * y >> (32 - 2 + 1)) >> (32 - CODEL_ROOT_BITS);
}

/* RFC 8289, section 5.4: t + interval / sqrt(count) */
static u64 codel_control_law(const struct codel *c, u64 t)
{
	if (c->coarse)
		return t + ((c->interval * ((u64)c->root << (32 - CODEL_ROOT_BITS))) >> 32);
	return t + int_sqrt64(div_u64(c->interval * c->interval, c->count));
}

static bool codel_above(struct codel *c, const struct lab_port *port, const struct port_queue *queue,
			const struct sk_buff *skb, u64 now)
{
	u64 shift = c->coarse ? CODEL_COARSE_SHIFT : 0, backlog_bytes = queue->bytes;

	if (skb && c->of_port)
		backlog_bytes = port_waiting(port) - port_bytes(port, skb);

	if (!skb || now - (port_packet(skb)->ns >> shift) < c->target || backlog_bytes <= c->largest_bytes) {
		c->first_above = 0;
		return false;
	}
	if (!c->first_above) {
		c->first_above = now + c->interval;
		return false;
	}
	return c->coarse ? now > c->first_above : now >= c->first_above;
}

/* Whether the last drop that was not made any more was due so recently that the count goes on; coarse: of 32 bits. */
static bool codel_soon(const struct codel *c, u64 now)
{
	u64 longest = CODEL_REUSE_INTERVALS * c->interval;

	return c->coarse ? (s32)(now - c->drop_next - longest) < 0 : (s64)(now - c->drop_next) < (s64)longest;
}

/* The next packet of a queue. */
static struct sk_buff *codel_next(struct codel *c, struct lab_port *port, struct port_queue *queue, u64 now_ns)
{
	u64 now = c->coarse ? now_ns >> CODEL_COARSE_SHIFT : now_ns;
	struct sk_buff *skb = queue_take(port, queue);
	bool above = codel_above(c, port, queue, skb, now);
	u32 since;

	if (c->dropping) {
		if (!above)
			c->dropping = false;
		while (c->dropping && now >= c->drop_next) {
			c->count++;
			if (c->coarse)
				codel_next_root(c);
			if (c->ecn && port_mark(port, skb)) {
				c->drop_next = codel_control_law(c, c->drop_next);
				return skb;
			}
			port_drop(port, skb);
			skb = queue_take(port, queue);
			if (codel_above(c, port, queue, skb, now))
				c->drop_next = codel_control_law(c, c->drop_next);
			else
				c->dropping = false;
		}
		return skb;
	}
	if (!above)
		return skb;
	if (!c->ecn || !port_mark(port, skb)) {
		port_drop(port, skb);
		skb = queue_take(port, queue);
		codel_above(c, port, queue, skb, now);
	}
	c->dropping = true;
	since = c->count - c->last_count;
	if (since > 1 && codel_soon(c, now)) {
		c->count = since;
		if (c->coarse)
			codel_next_root(c);
	} else {
		c->count = 1;
		c->root = U16_MAX;
	}
	c->last_count = c->count;
	c->drop_next = codel_control_law(c, now);
	return skb;
}

static void codel_begin(struct lab_port *port)
{
	struct codel_port *p = port_state(port);

	codel_init(&p->codel, port);
	queue_init(&p->queue);
}

static void codel_end(struct lab_port *port)
{
	queue_free(&((struct codel_port *)port_state(port))->queue);
}

static void codel_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	queue_put(port, &((struct codel_port *)port_state(port))->queue, skb);
}

static struct sk_buff *codel_leave(struct lab_port *port, u64 now_ns)
{
	struct codel_port *p = port_state(port);

	return codel_next(&p->codel, port, &p->queue, now_ns);
}

static const struct aqm aqm_codel = {
	.state_bytes = sizeof(struct codel_port),
	.check = codel_check,
	.begin = codel_begin,
	.end = codel_end,
	.arrive = codel_arrive,
	.leave = codel_leave,
};

#endif
