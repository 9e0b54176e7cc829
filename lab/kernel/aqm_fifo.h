/* SPDX-License-Identifier: GPL-2.0 */
/* First in, first out: the queue of all AQMs that decide when a packet arrives, and no AQM by itself. */
#ifndef TESTCTL_AQM_FIFO_H
#define TESTCTL_AQM_FIFO_H

#include "lab_port.h"
#include "lab_random.h"

/* An AQM's state begins with its queue, where fifo_*() are its functions. */
static int fifo_check(const struct port_options *options)
{
	return 0;
}

static void fifo_begin(struct lab_port *port)
{
	__skb_queue_head_init(port->state);
}

static void fifo_end(struct lab_port *port)
{
	__skb_queue_purge(port->state);
}

static void fifo_arrive(struct lab_port *port, struct sk_buff *skb, u64 now_ns)
{
	__skb_queue_tail(port->state, skb);
}

static struct sk_buff *fifo_leave(struct lab_port *port, u64 now_ns)
{
	return __skb_dequeue(port->state);
}

static const struct aqm aqm_fifo = {
	.state_bytes = sizeof(struct sk_buff_head),
	.check = fifo_check,
	.begin = fifo_begin,
	.end = fifo_end,
	.arrive = fifo_arrive,
	.leave = fifo_leave,
};

#endif
