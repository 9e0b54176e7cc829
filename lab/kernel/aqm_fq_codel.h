/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FQ-CoDel (RFC 8290): packets are queued by a hash of their flow, the queues share the line by
 * deficit round robin in bytes, new ones first, and each has its own CoDel.
 *
 * The hash's key is made of the seed.  When the buffer is full, packets at the head of the longest
 * queue make place for the one that arrives, no more of them than it needs.
 *
 * With CODEL_COARSE it is Linux's, for comparison: a new queue that is empty is forgotten where there
 * are no old ones, "bytes in the queue" are those of all queues, and the buffer is FQ_CODEL_LIMIT
 * packets.  The packet that exceeds them is queued, and then half the bytes of the longest queue, but
 * at most 64 packets, are dropped at its head; its CoDel counts them as its own drops.  The hash's key
 * is the kernel's, which decides between queues of the same length.
 */
#ifndef TESTCTL_AQM_FQ_CODEL_H
#define TESTCTL_AQM_FQ_CODEL_H

#include <linux/list.h>
#include <linux/siphash.h>

#include "aqm_codel.h"

/* After those of CoDel. */
enum { FQ_CODEL_FLOWS = CODEL_ECN + 1, FQ_CODEL_QUANTUM };

#define FQ_CODEL_LIMIT (PORT_WORDS - 2)	/* with CODEL_COARSE; 0: none.  Not a parameter of any plan */
#define FQ_CODEL_BATCH 64
#define FQ_CODEL_MOST_FLOWS 1024
#define FQ_CODEL_MOST_QUANTUM (1 << 20)

struct fq_flow {
	struct list_head in_round;	/* empty: inactive */
	s64 deficit;
	struct codel codel;
	struct port_queue queue;
};

struct fq_codel {
	siphash_key_t key;
	struct list_head fresh;		/* "new queues" */
	struct list_head old;
	struct fq_flow flows[FQ_CODEL_MOST_FLOWS];
};

static int fq_codel_check(const struct port_options *options)
{
	const u64 *word = options->word;

	if (!word[FQ_CODEL_FLOWS] || word[FQ_CODEL_FLOWS] > FQ_CODEL_MOST_FLOWS ||
	    !word[FQ_CODEL_QUANTUM] || word[FQ_CODEL_QUANTUM] > FQ_CODEL_MOST_QUANTUM)
		return -EINVAL;
	return codel_check(options);
}

static void fq_codel_begin(struct lab_port *port)
{
	struct fq_codel *f = port_state(port);
	u32 i;

	f->key.key[0] = port_random(port);
	f->key.key[1] = port_random(port);
	INIT_LIST_HEAD(&f->fresh);
	INIT_LIST_HEAD(&f->old);
	for (i = 0; i < FQ_CODEL_MOST_FLOWS; i++) {
		INIT_LIST_HEAD(&f->flows[i].in_round);
		codel_init(&f->flows[i].codel, port);
		f->flows[i].codel.of_port = f->flows[i].codel.coarse;
		queue_init(&f->flows[i].queue);
	}
}

static void fq_codel_end(struct lab_port *port)
{
	struct fq_codel *f = port_state(port);
	u32 i;

	for (i = 0; i < FQ_CODEL_MOST_FLOWS; i++)
		queue_free(&f->flows[i].queue);
}

static struct fq_flow *fq_codel_longest(struct fq_codel *f)
{
	struct fq_flow *longest = &f->flows[0];
	u32 i;

	for (i = 1; i < FQ_CODEL_MOST_FLOWS; i++)
		if (f->flows[i].queue.bytes > longest->queue.bytes)
			longest = &f->flows[i];
	return longest;
}

/* Of a queue that has packets. */
static void fq_codel_drop_half(struct lab_port *port, struct fq_codel *f)
{
	struct fq_flow *longest = fq_codel_longest(f);
	u64 half = longest->queue.bytes / 2, rest = longest->queue.bytes - half;
	u32 dropped = 0;

	do {
		port_drop(port, queue_take(port, &longest->queue));
		dropped++;
	} while (dropped < FQ_CODEL_BATCH && longest->queue.bytes > rest);
	longest->codel.count += dropped;
}

static void fq_codel_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	const u64 *word = port_options(port)->word;
	struct fq_codel *f = port_state(port);
	u32 hash = word[CODEL_COARSE] ? skb_get_hash(skb) : skb_get_hash_perturb(skb, &f->key);
	struct fq_flow *flow = &f->flows[reciprocal_scale(hash, word[FQ_CODEL_FLOWS])];

	queue_put(port, &flow->queue, skb);
	if (list_empty(&flow->in_round)) {
		list_add_tail(&flow->in_round, &f->fresh);
		flow->deficit = word[FQ_CODEL_QUANTUM];
	}
	if (word[FQ_CODEL_LIMIT] && port_packets(port) > word[FQ_CODEL_LIMIT])
		fq_codel_drop_half(port, f);
}

/* RFC 8290, section 4.2 */
static struct sk_buff *fq_codel_leave(struct lab_port *port, u64 now_ns)
{
	struct fq_codel *f = port_state(port);
	struct fq_flow *flow;
	struct sk_buff *skb;
	bool fresh;

	for (;;) {
		fresh = !list_empty(&f->fresh);
		flow = list_first_entry_or_null(fresh ? &f->fresh : &f->old, struct fq_flow, in_round);
		if (!flow)
			return NULL;
		if (flow->deficit <= 0) {
			flow->deficit += port_options(port)->word[FQ_CODEL_QUANTUM];
			list_move_tail(&flow->in_round, &f->old);
			continue;
		}
		skb = codel_next(&flow->codel, port, &flow->queue, now_ns);
		if (skb) {
			flow->deficit -= port_bytes(port, skb);
			return skb;
		}
		if (fresh && !(flow->codel.coarse && list_empty(&f->old)))
			list_move_tail(&flow->in_round, &f->old);
		else
			list_del_init(&flow->in_round);
	}
}

static bool fq_codel_shorten(struct lab_port *port)
{
	struct fq_flow *longest = fq_codel_longest(port_state(port));

	if (!longest->queue.bytes)
		return false;
	port_drop(port, queue_take(port, &longest->queue));
	return true;
}

static const struct aqm aqm_fq_codel = {
	.state_bytes = sizeof(struct fq_codel),
	.check = fq_codel_check,
	.begin = fq_codel_begin,
	.end = fq_codel_end,
	.arrive = fq_codel_arrive,
	.leave = fq_codel_leave,
	.shorten = fq_codel_shorten,
};

#endif
