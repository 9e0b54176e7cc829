// SPDX-License-Identifier: GPL-2.0
/*
 * testctl_port: the egress port of a switch with a queue that manages itself, as a root qdisc.
 *
 * The link is the one of port_model.h (plugins/p4c_ebpf/src/p4c_ebpf/runtime): packets are
 * serialised one after the other at a rate, each with `framing` bytes more, and arrive `delay`
 * later; one that would make what is not serialised yet exceed the buffer is dropped.  With first
 * in, first out, packets depart at the same nanoseconds as there.  The line is free again at an
 * exact time, kept as nanoseconds and a rest in nanobits.
 *
 * What waits belongs to the AQM (lab_port.h).  Whatever has become due since the last event is done
 * first, each at its own time, so that a timer that is late, and packets that come at the instant
 * of a timer, change nothing.  As a device asks its qdisc, the AQM is asked for a packet each time
 * the line becomes free, and once where it drops what arrives at a free line, also when it has none.
 *
 * The AQM "child" is a qdisc of Linux's own below this one (class 1).  What it draws at random comes from the
 * port's seed, and so does the hash by which it knows a packet's flow.  What it frees while it is asked has been
 * dropped, and what has CE when it comes out, but had not before, has been marked.
 *
 * /proc/testctl_port (lab_host_file.h) has no words: a row for each packet of the ports of the
 * writer's network namespace, in the order in which their ends are known.
 */
#include <linux/bottom_half.h>
#include <linux/init.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/flow_dissector.h>

#include "lab_host_file.h"
#include "lab_links.h"
#include "lab_port.h"
#include "lab_random.h"

#include "aqm_fifo.h"
#include "aqm_policer.h"
#include "aqm_dualpi2.h"
#include "aqm_red.h"

#define MOST_RATE_BPS 10000000000000ULL
#define MOST_DELAY_NS 1000000000000ULL
#define MOST_FRAMING_BYTES 1000
#define CHILD_CLASS 1

struct port_row {
	u64 arrived_ns;			/* CLOCK_MONOTONIC */
	u64 departs_ns;			/* 0: dropped */
	u32 ifindex;
	u32 bytes;			/* without framing */
	u32 queue_bytes;		/* what it found waiting */
	u32 end;			/* enum port_end */
	u64 number;			/* among the port's packets that arrived then */
};

struct recorder {
	struct lab_recorder recorder;
	struct list_head in_all;
	u64 dropped;
};

static LIST_HEAD(recorders);	/* changed with softirqs off; UML has one processor */
static struct lab_port *asked;	/* whose child is being asked */

static const struct aqm *const aqms[AQM_KINDS] = {
	[AQM_FIFO] = &aqm_fifo,
	[AQM_POLICER] = &aqm_policer,
	[AQM_DUALPI2] = &aqm_dualpi2,
	[AQM_RED] = &aqm_red,
	[AQM_CHILD] = &aqm_fifo,
};

static void write_row(struct lab_port *port, const struct sk_buff *skb, u64 departs_ns, enum port_end end)
{
	const struct net_device *dev = qdisc_dev(port->sch);
	const struct port_packet *packet = port_packet(skb);
	struct recorder *one;
	struct port_row *row;

	list_for_each_entry(one, &recorders, in_all) {
		if (one->recorder.net != dev_net(dev))
			continue;
		row = lab_file_space(&one->recorder.file, sizeof(*row));
		if (!row) {
			one->dropped++;
			continue;
		}
		*row = (struct port_row){
			.arrived_ns = packet->ns,
			.departs_ns = departs_ns,
			.ifindex = dev->ifindex,
			.bytes = qdisc_pkt_len(skb),
			.queue_bytes = packet->queue_bytes,
			.end = end,
			.number = packet->number,
		};
		lab_file_put(&one->recorder.file, sizeof(*row));
	}
}

/* A packet that is in no queue any more (or not yet) is lost. */
static void forget(struct lab_port *port, struct sk_buff *skb, enum port_end end)
{
	port->packets--;
	port->bytes -= port_bytes(port, skb);
	write_row(port, skb, 0, end);
}

static void port_drop(struct lab_port *port, struct sk_buff *skb)
{
	port->counts.dropped++;
	forget(port, skb, PORT_DROPPED);
	kfree_skb(skb);
}

/* The destructor of the packets in a child; those that it frees otherwise waited when it was reset or removed. */
static void freed_by_child(struct sk_buff *skb)
{
	if (!asked)
		return;
	asked->counts.dropped++;
	forget(asked, skb, PORT_DROPPED);
}

/* Whether it has CE now.  Its header may be shared with a packet that its sender keeps. */
static bool port_mark(struct lab_port *port, struct sk_buff *skb)
{
	u32 head = skb_network_offset(skb) + sizeof(struct iphdr);

	if (skb_protocol(skb, true) == htons(ETH_P_IPV6))
		head += sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	if (head > skb->len || skb_ensure_writable(skb, head) || !INET_ECN_set_ce(skb))
		return false;
	if (!port_packet(skb)->marked)
		port->counts.marked++;
	port_packet(skb)->marked = 1;
	return true;
}

/* Whether the AQM has nothing to be asked for. */
static bool is_empty(const struct lab_port *port)
{
	return !port->asks && !(port->child ? port->child->q.qlen : port->packets);
}

/* When the line is free, rounded up to a nanosecond. */
static u64 free_at(const struct lab_port *port)
{
	return port->free_ns + !!port->free_nanobits;
}

/* Serialise a packet that the AQM gave, from when the line is free. */
static void serialise(struct lab_port *port, struct sk_buff *skb)
{
	struct port_packet *packet = port_packet(skb);
	u64 rate = port->options.rate_bps, nanobits;

	if (rate) {
		nanobits = port->free_nanobits + port_bytes(port, skb) * NANOBITS_PER_BYTE;
		port->free_ns += div64_u64_rem(nanobits, rate, &port->free_nanobits);
	}
	port->packets--;
	port->bytes -= port_bytes(port, skb);
	write_row(port, skb, free_at(port) + port->options.delay_ns, packet->marked ? PORT_MARKED : PORT_SENT);
	port->asks = true;
	packet->ns = free_at(port) + port->options.delay_ns;
	testctl_links_announce(qdisc_dev(port->sch), skb, packet->ns);
	__skb_queue_tail(&port->line, skb);
	port->line_bytes += qdisc_pkt_len(skb);
}

static void ask_child(struct lab_port *port)
{
	asked = port;
	testctl_random_of = &port->random;
}

static void asked_child(void)
{
	asked = NULL;
	testctl_random_of = NULL;
}

static bool has_ce(struct sk_buff *skb)
{
	int field = skb_get_dsfield(skb);

	return field >= 0 && INET_ECN_is_ce(field);
}

/* The child's next packet; NULL: none. */
static struct sk_buff *from_child(struct lab_port *port)
{
	struct sk_buff *skb;

	ask_child(port);
	skb = port->child->dequeue(port->child);
	asked_child();
	if (!skb)
		return NULL;
	skb->destructor = NULL;
	if (!port_packet(skb)->had_ce && has_ce(skb)) {
		port_packet(skb)->marked = 1;
		port->counts.marked++;
	}
	return skb;
}

static void to_child(struct lab_port *port, struct sk_buff *skb)
{
	struct sk_buff *freed = NULL;

	port_packet(skb)->had_ce = has_ce(skb);
	skb->destructor = freed_by_child;
	__skb_set_hash(skb, skb_get_hash_perturb(skb, &port->key), true, true);
	ask_child(port);
	qdisc_enqueue(skb, port->child, &freed);
	kfree_skb_list(freed);
	asked_child();
}

/* What the qdisc says of itself; a child has changed it at each drop (qdisc_tree_reduce_backlog()). */
static void count(struct lab_port *port)
{
	struct Qdisc *sch = port->sch;

	sch->q.qlen = port->packets + skb_queue_len(&port->line);
	sch->qstats.backlog = port->bytes - port->packets * port->options.framing_bytes + port->line_bytes;
	sch->qstats.drops = port->counts.dropped + port->counts.full;
}

static u64 next_update(const struct lab_port *port)
{
	return port->aqm->update && port->update_ns ? port->update_ns : U64_MAX;
}

/* Do what is due by `now`. */
static void advance(struct lab_port *port, u64 now)
{
	struct sk_buff *skb;
	u64 update, begins;

	for (;;) {
		update = next_update(port);
		begins = is_empty(port) ? U64_MAX : free_at(port);
		if (min(update, begins) > now)
			return;
		if (update <= begins) {
			port->aqm->update(port, update);
			port->update_ns += port->options.word[port->aqm->update_word];
			continue;
		}
		port->asks = false;
		skb = port->child ? from_child(port) : port->aqm->leave(port, begins);
		if (!skb && port->child)
			return;
		if (skb)
			serialise(port, skb);
	}
}

/* What is not serialised yet at `now`, to which advance() has been, in bytes rounded up. */
static u64 depth_bytes(const struct lab_port *port, u64 now)
{
	u64 rate = port->options.rate_bps, rest = 0;

	if (free_at(port) > now)
		rest = (port->free_ns - now) * rate + port->free_nanobits;
	return port->bytes + DIV64_U64_ROUND_UP(rest, NANOBITS_PER_BYTE);
}

static int arrive(struct lab_port *port, struct sk_buff *skb, u64 now)
{
	u64 bytes = port_bytes(port, skb), depth = depth_bytes(port, now), dropped = port->counts.dropped;

	port->number = now == port->latest_ns ? min_t(u32, port->number + 1, PORT_MOST_NUMBER) : 0;
	port->latest_ns = now;
	*port_packet(skb) = (struct port_packet){
		.ns = now,
		.number = port->number,
		.queue_bytes = min_t(u64, depth, PORT_MOST_QUEUE_BYTES),
	};
	port->packets++;
	port->bytes += bytes;
	if (port->options.buffer_bytes && depth + bytes > port->options.buffer_bytes) {
		port->counts.full++;
		forget(port, skb, PORT_FULL);
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	if (port->child)
		to_child(port, skb);
	else
		port->aqm->arrive(port, skb, now);
	return port->counts.dropped == dropped ? NET_XMIT_SUCCESS : NET_XMIT_CN;
}

static int port_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct lab_port *port = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	int error;

	advance(port, now);
	if (port->aqm->update && !port->update_ns)
		port->update_ns = now + port->options.word[port->aqm->update_word];
	port->idle_from_ns = U64_MAX;
	if (is_empty(port) && free_at(port) <= now) {
		port->idle_from_ns = free_at(port);
		port->free_ns = now;
		port->free_nanobits = 0;
	}
	skb_orphan(skb);
	error = arrive(port, skb, now);
	port->asks = true;
	advance(port, now);
	count(port);
	return error;
}

static struct sk_buff *port_dequeue(struct Qdisc *sch)
{
	struct lab_port *port = qdisc_priv(sch);
	u64 now = ktime_get_ns(), next;
	struct sk_buff *skb;

	advance(port, now);
	skb = skb_peek(&port->line);
	if (skb && port_packet(skb)->ns <= now) {
		__skb_unlink(skb, &port->line);
		port->line_bytes -= qdisc_pkt_len(skb);
		qdisc_bstats_update(sch, skb);
		count(port);
		return skb;
	}
	count(port);
	next = is_empty(port) ? U64_MAX : free_at(port);
	if (skb)
		next = min(next, (u64)port_packet(skb)->ns);
	if (next != U64_MAX)
		qdisc_watchdog_schedule_ns(&port->timer, next);
	return NULL;
}

/* Nothing waits, and nothing has been. */
static void clear(struct lab_port *port)
{
	if (port->state) {
		port->aqm->end(port);
		memset(port->state, 0, port->aqm->state_bytes);
	}
	__skb_queue_purge(&port->line);
	port->line_bytes = 0;
	port->asks = false;
	port->packets = 0;
	port->bytes = 0;
	port->free_ns = 0;
	port->free_nanobits = 0;
	port->update_ns = 0;
	port->latest_ns = 0;
	count(port);
}

static void begin(struct lab_port *port)
{
	port->random = port->options.seed;
	if (port->child) {
		port->key.key[0] = testctl_random_next(&port->random);
		port->key.key[1] = testctl_random_next(&port->random);
	}
	port->aqm->begin(port);
}

static int check(const struct port_options *options)
{
	if (options->rate_bps > MOST_RATE_BPS || options->delay_ns > MOST_DELAY_NS ||
	    options->framing_bytes > MOST_FRAMING_BYTES || options->kind >= AQM_KINDS || !aqms[options->kind])
		return -EINVAL;
	return aqms[options->kind]->check(options);
}

static int port_change(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *why)
{
	struct lab_port *port = qdisc_priv(sch);
	struct port_options options;
	struct Qdisc *child = NULL, *before;
	void *fresh, *old;
	int error;

	if (!given || nla_len(given) != sizeof(options))
		return -EINVAL;
	memcpy(&options, nla_data(given), sizeof(options));
	error = check(&options);
	if (error)
		return error;
	fresh = kvzalloc(aqms[options.kind]->state_bytes, GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;
	if (options.kind == AQM_CHILD) {
		child = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops, TC_H_MAKE(sch->handle, CHILD_CLASS), why);
		if (!child) {
			kvfree(fresh);
			return -ENOMEM;
		}
		qdisc_hash_add(child, true);
	}
	sch_tree_lock(sch);
	clear(port);
	port->options = options;
	port->aqm = aqms[options.kind];
	old = port->state;
	port->state = fresh;
	before = port->child;
	port->child = child;
	begin(port);
	sch_tree_unlock(sch);
	qdisc_put(before);
	kvfree(old);
	return 0;
}

static int port_init(struct Qdisc *sch, struct nlattr *given, struct netlink_ext_ack *why)
{
	struct lab_port *port = qdisc_priv(sch);

	port->sch = sch;
	port->aqm = &aqm_fifo;
	__skb_queue_head_init(&port->line);
	qdisc_watchdog_init(&port->timer, sch);
	return port_change(sch, given, why);
}

static void port_reset(struct Qdisc *sch)
{
	struct lab_port *port = qdisc_priv(sch);

	clear(port);
	begin(port);
	if (port->child)
		qdisc_reset(port->child);
	qdisc_watchdog_cancel(&port->timer);
}

static void port_destroy(struct Qdisc *sch)
{
	struct lab_port *port = qdisc_priv(sch);

	if (!port->sch)
		return;
	qdisc_watchdog_cancel(&port->timer);
	clear(port);
	kvfree(port->state);
	qdisc_put(port->child);
}

static int port_dump(struct Qdisc *sch, struct sk_buff *to)
{
	struct lab_port *port = qdisc_priv(sch);

	return nla_put(to, TCA_OPTIONS, sizeof(port->options), &port->options) ? -EMSGSIZE : to->len;
}

static int port_dump_stats(struct Qdisc *sch, struct gnet_dump *to)
{
	struct lab_port *port = qdisc_priv(sch);

	return gnet_stats_copy_app(to, &port->counts, sizeof(port->counts));
}

#include "port_classes.h"

static struct Qdisc_ops port_operations __read_mostly = {
	.id = "testctl_port",
	.cl_ops = &port_classes,
	.priv_size = sizeof(struct lab_port),
	.enqueue = port_enqueue,
	.dequeue = port_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = port_init,
	.reset = port_reset,
	.destroy = port_destroy,
	.change = port_change,
	.dump = port_dump,
	.dump_stats = port_dump_stats,
};

static int begin_rows(struct lab_recorder *recorder, char *words)
{
	struct recorder *one = container_of(recorder, struct recorder, recorder);

	if (*words)
		return -EINVAL;
	local_bh_disable();
	list_add_tail(&one->in_all, &recorders);
	local_bh_enable();
	return 0;
}

static void end_rows(struct lab_recorder *recorder)
{
	struct recorder *one = container_of(recorder, struct recorder, recorder);

	local_bh_disable();
	list_del(&one->in_all);
	local_bh_enable();
}

static int tell_rows(const struct lab_recorder *recorder, char *to, u32 bytes)
{
	const struct recorder *one = container_of(recorder, struct recorder, recorder);

	return scnprintf(to, bytes, "dropped=%llu\n", one->dropped);
}

static const struct lab_recorder_type rows = {
	.name = "testctl_port",
	.bytes = sizeof(struct recorder),
	.begin = begin_rows,
	.end = end_rows,
	.tell = tell_rows,
};

static int __init lab_port_init(void)
{
	int error = register_qdisc(&port_operations);
	struct flow_keys none = { };

	/* The kernel draws the key of its own hash of flows when it is first used: not in a point, or from a port's seed. */
	flow_hash_from_keys(&none);
	return error ? error : lab_recorder_register(&rows);
}
device_initcall(lab_port_init);
