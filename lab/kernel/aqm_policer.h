/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A policer: a token bucket of `burst` bytes that fills at `rate`; a packet that finds fewer tokens
 * than its bytes is dropped, and takes none.  Tokens are nanobits, so that no time is rounded.
 */
#ifndef TESTCTL_AQM_POLICER_H
#define TESTCTL_AQM_POLICER_H

#include "aqm_fifo.h"

enum { POLICER_RATE, POLICER_BURST };

#define POLICER_MOST_BYTES (1ULL << 30)

struct policer {
	struct sk_buff_head queue;
	u64 tokens;
	u64 since_ns;
};

static int policer_check(const struct port_options *options)
{
	const u64 *word = options->word;

	return !word[POLICER_RATE] || !word[POLICER_BURST] || word[POLICER_BURST] > POLICER_MOST_BYTES ? -EINVAL : 0;
}

static void policer_begin(struct lab_port *port)
{
	((struct policer *)port->state)->tokens = port->options.word[POLICER_BURST] * NANOBITS_PER_BYTE;
	fifo_begin(port);
}

static void policer_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	const u64 *word = port->options.word;
	struct policer *p = port->state;
	u64 full = word[POLICER_BURST] * NANOBITS_PER_BYTE, need = port_bytes(port, skb) * NANOBITS_PER_BYTE;
	u64 elapsed = now_ns > p->since_ns ? now_ns - p->since_ns : 0;

	p->since_ns += elapsed;
	if (elapsed <= div64_u64(full - p->tokens, word[POLICER_RATE]))
		p->tokens += elapsed * word[POLICER_RATE];
	else
		p->tokens = full;
	if (p->tokens < need) {
		port_drop(port, skb);
		return;
	}
	p->tokens -= need;
	__skb_queue_tail(&p->queue, skb);
}

static const struct aqm aqm_policer = {
	.state_bytes = sizeof(struct policer),
	.check = policer_check,
	.begin = policer_begin,
	.end = fifo_end,
	.arrive = policer_arrive,
	.leave = fifo_leave,
};

#endif
