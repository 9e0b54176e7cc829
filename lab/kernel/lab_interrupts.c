// SPDX-License-Identifier: GPL-2.0
/*
 * NICs that wait before they interrupt, and hosts that answer an interrupt late.
 *
 * In virtual time a packet is received at the instant at which it arrives.  A real NIC may wait
 * for more packets (interrupt coalescing), and a real host begins to poll some time after the
 * interrupt: it is busy, or its processor sleeps.  Here both are modelled where they are: a
 * device's NAPI is scheduled, or its packets go to the backlog, that much later.  What arrives
 * meanwhile is in the same batch, and no packet overtakes another.
 *
 * Coalescing: ethtool's rx-usecs and rx-frames of a veth (an edit of drivers/net/veth.c calls
 * testctl_get_coalesce() and testctl_set_coalesce()).  0 and 0: an interrupt for each packet, as
 * long as none is pending.
 *
 * Jitter: words "DEVICE DISTRIBUTION MEAN_NS TAIL_NS TAIL_EVERY SEED STREAM" to
 * /sys/module/testctl_interrupts/parameters/jitter, where DEVICE is one of the writer's network
 * namespace.  An interrupt is answered after a time of that distribution (constant; uniform, from
 * 0 to twice the mean; exponential) and mean.  One in TAIL_EVERY takes a further exponential time
 * of mean TAIL_NS.  The same holds for the timer with which GRO hands its packets up
 * (gro_flush_timeout), and for the timers of the device's queueing disciplines: their softirq is
 * late too.  Not late: timers of TCP, and programs.
 *
 * The numbers come from a stream of the device's own (SplitMix64, see lab_random.c), which SEED
 * and STREAM begin, and a number written to parameters/restart begins again for all devices.  No
 * other stream is touched, so that with a mean and a tail of 0 nothing changes.
 */
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/kstrtox.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>

#include "lab_links.h"
#include "lab_random.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_interrupts."

#define LONGEST_NS 1000000000ULL
#define MOST_EVERY (1U << 30)
#define LN2_Q32 2977044472ULL	/* ln(2) * 2^32 */
#define LOG_BITS 24		/* of the fraction of a logarithm */

enum distribution { CONSTANT, UNIFORM, EXPONENTIAL, DISTRIBUTIONS };

static const char *const names[DISTRIBUTIONS] = { "constant", "uniform", "exponential" };

typedef enum hrtimer_restart (*expiry)(struct hrtimer *timer);

/* One reason to interrupt: the packets of a NAPI, or those that wait in `held` of a device without one. */
struct line {
	struct list_head in_nic;
	struct nic *nic;
	struct napi_struct *napi;	/* NULL: the device's own */
	struct hrtimer timer;
	bool pending;
	bool raised;		/* the NIC has interrupted: what is waited for is the host */
	u32 packets;		/* since the first one, while the NIC waits */
};

/* A timer of the kernel's that goes off late. */
struct late_timer {
	struct list_head in_all;
	struct nic *nic;
	struct hrtimer *timer;
	expiry own;
	ktime_t until;		/* it has gone off, and the host is late */
};

struct jitter {
	enum distribution distribution;
	u64 mean_ns;
	u64 tail_ns;
	u32 tail_every;
	u64 seed;
	u64 stream;
};

struct nic {
	struct list_head in_all;
	struct net_device *dev;
	u32 rx_usecs;
	u32 rx_frames;
	struct jitter jitter;
	u64 state;		/* of the stream */
	struct line own;
	struct sk_buff_head held;
	struct list_head lines;	/* (owned) */
};

static LIST_HEAD(all);	/* changed under RTNL; UML has one processor */
static LIST_HEAD(late_timers);

#ifndef TESTCTL_HAS_HRTIMER_SETUP
static void hrtimer_setup(struct hrtimer *timer, expiry function, clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

static struct nic *nic_of(const struct net_device *dev)
{
	struct nic *nic;

	list_for_each_entry(nic, &all, in_all)
		if (nic->dev == dev)
			return nic;
	return NULL;
}

static void begin_stream(struct nic *nic, u64 number)
{
	u64 seed = nic->jitter.seed, stream = nic->jitter.stream;

	nic->state = testctl_random_next(&seed) ^ testctl_random_next(&stream) ^ testctl_random_next(&number);
}

/* mean * -ln(u), u uniform in (0, 1): u = m * 2^-(e + 1) with m in [1, 2), whose log2 comes bit by bit. */
static u64 exponential_ns(struct nic *nic, u64 mean_ns)
{
	u64 u = testctl_random_next(&nic->state) | 1;
	u32 e = 64 - fls64(u), bit;
	u64 m = (u << e) >> 32;		/* 2^31 is 1 */
	u64 log2 = (u64)(e + 1) << LOG_BITS;

	for (bit = LOG_BITS; bit--; ) {
		m = m * m >> 31;
		if (m >> 32) {
			m >>= 1;
			log2 -= 1ULL << bit;
		}
	}
	return mean_ns * (log2 * LN2_Q32 >> 32) >> LOG_BITS;
}

/* How late the host is this time.  With interrupts off. */
static u64 late_ns(struct nic *nic)
{
	const struct jitter *j = &nic->jitter;
	u64 ns = j->mean_ns;

	if (ns && j->distribution == UNIFORM)
		ns = (testctl_random_next(&nic->state) >> 32) * (2 * ns) >> 32;
	else if (ns && j->distribution == EXPONENTIAL)
		ns = exponential_ns(nic, ns);
	if (j->tail_ns && (testctl_random_next(&nic->state) >> 32) * j->tail_every >> 32 == 0)
		ns += exponential_ns(nic, j->tail_ns);
	return ns;
}

void __real___napi_schedule(struct napi_struct *napi);
void __wrap___napi_schedule(struct napi_struct *napi);
int __real___netif_rx(struct sk_buff *skb);
int __wrap___netif_rx(struct sk_buff *skb);
int __real___dev_forward_skb(struct net_device *dev, struct sk_buff *skb);
int __wrap___dev_forward_skb(struct net_device *dev, struct sk_buff *skb);
void __real_qdisc_watchdog_schedule_range_ns(struct qdisc_watchdog *watchdog, u64 expires, u64 delta_ns);
void __wrap_qdisc_watchdog_schedule_range_ns(struct qdisc_watchdog *watchdog, u64 expires, u64 delta_ns);

/* The host begins with what is there. */
static void answer(struct line *line)
{
	struct sk_buff *skb;

	line->pending = false;
	if (line->napi)
		__real___napi_schedule(line->napi);
	else
		while ((skb = __skb_dequeue(&line->nic->held)))
			__real___netif_rx(skb);
}

/* The NIC interrupts; true: the answer comes later. */
static bool raise(struct line *line)
{
	u64 ns = late_ns(line->nic);

	line->raised = true;
	if (ns)
		hrtimer_start(&line->timer, ns_to_ktime(ns), HRTIMER_MODE_REL);
	return ns;
}

static enum hrtimer_restart line_expired(struct hrtimer *timer)
{
	struct line *line = container_of(timer, struct line, timer);
	u64 ns = line->raised ? 0 : late_ns(line->nic);

	line->raised = true;
	if (ns) {
		hrtimer_add_expires_ns(timer, ns);
		return HRTIMER_RESTART;
	}
	answer(line);
	return HRTIMER_NORESTART;
}

/* There is a first packet. */
static void arrived(struct line *line)
{
	const struct nic *nic = line->nic;
	unsigned long flags;

	local_irq_save(flags);
	line->pending = true;
	line->raised = false;
	line->packets = 1;
	if (nic->rx_usecs && nic->rx_frames != 1)
		hrtimer_start(&line->timer, ns_to_ktime(nic->rx_usecs * 1000ULL), HRTIMER_MODE_REL);
	else if (!raise(line))
		answer(line);
	local_irq_restore(flags);
}

/* One more packet has arrived where the NIC may be waiting for it. */
static void count(struct line *line)
{
	u32 frames = line->nic->rx_frames;

	if (!line->pending || line->raised || !frames || ++line->packets < frames)
		return;
	hrtimer_cancel(&line->timer);
	/* The packet itself is not in the ring yet: the answer is a timer's in any case. */
	if (!raise(line))
		hrtimer_start(&line->timer, 0, HRTIMER_MODE_REL);
}

/* Under RTNL or with bottom halves off. */
static void begin_line(struct line *line, struct nic *nic, struct napi_struct *napi)
{
	line->nic = nic;
	line->napi = napi;
	line->pending = false;
	hrtimer_setup(&line->timer, line_expired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

static struct line *line_of(struct nic *nic, struct napi_struct *napi)
{
	struct line *line;

	list_for_each_entry(line, &nic->lines, in_nic)
		if (line->napi == napi)
			return line;
	line = kzalloc(sizeof(*line), GFP_ATOMIC);
	if (line) {
		begin_line(line, nic, napi);
		list_add(&line->in_nic, &nic->lines);
	}
	return line;
}

static struct late_timer *late_of(const struct hrtimer *timer)
{
	struct late_timer *late;

	list_for_each_entry(late, &late_timers, in_all)
		if (late->timer == timer)
			return late;
	return NULL;
}

static enum hrtimer_restart late_expired(struct hrtimer *timer)
{
	struct late_timer *late = late_of(timer);
	u64 ns;

	if (WARN_ON_ONCE(!late))
		return HRTIMER_NORESTART;
	ns = hrtimer_get_expires(timer) == late->until ? 0 : late_ns(late->nic);
	if (!ns)
		return late->own(timer);
	hrtimer_add_expires_ns(timer, ns);
	late->until = hrtimer_get_expires(timer);
	return HRTIMER_RESTART;
}

/* From now on the timer is late; so is one that has the place of another, which is gone, in memory. */
static void make_late(struct nic *nic, struct hrtimer *timer)
{
	expiry *function = (expiry *)&ACCESS_PRIVATE(timer, function);
	struct late_timer *late;

	if (*function == late_expired)
		return;
	late = late_of(timer);
	if (!late) {
		late = kzalloc(sizeof(*late), GFP_ATOMIC);
		if (!late)
			return;
		late->timer = timer;
		list_add(&late->in_all, &late_timers);
	}
	late->nic = nic;
	late->own = *function;
	*function = late_expired;
}

void __wrap___napi_schedule(struct napi_struct *napi)
{
	struct nic *nic = list_empty(&all) ? NULL : nic_of(napi->dev);
	struct line *line = nic ? line_of(nic, napi) : NULL;

	if (!line) {
		__real___napi_schedule(napi);
		return;
	}
	make_late(nic, &napi->timer);
	arrived(line);
}

int __wrap___netif_rx(struct sk_buff *skb)
{
	struct nic *nic = list_empty(&all) ? NULL : nic_of(skb->dev);

	if (testctl_links_receive(skb))
		return NET_RX_SUCCESS;
	if (!nic)
		return __real___netif_rx(skb);
	__skb_queue_tail(&nic->held, skb);
	if (!nic->own.pending)
		arrived(&nic->own);
	return NET_RX_SUCCESS;
}

int __wrap___dev_forward_skb(struct net_device *dev, struct sk_buff *skb)
{
	struct nic *nic = list_empty(&all) ? NULL : nic_of(dev);
	unsigned long flags;
	struct line *line;

	if (nic && nic->rx_frames) {
		local_irq_save(flags);
		count(&nic->own);
		list_for_each_entry(line, &nic->lines, in_nic)
			count(line);
		local_irq_restore(flags);
	}
	if (testctl_apart && skb_cloned(skb)) {
		u32 truesize = skb->truesize;

		if (pskb_expand_head(skb, 0, 0, GFP_ATOMIC)) {
			kfree_skb(skb);
			return NET_RX_DROP;
		}
		skb->truesize = truesize;
	}
	return __real___dev_forward_skb(dev, skb);
}

void __wrap_qdisc_watchdog_schedule_range_ns(struct qdisc_watchdog *watchdog, u64 expires, u64 delta_ns)
{
	struct nic *nic = list_empty(&all) ? NULL : nic_of(qdisc_dev(watchdog->qdisc));

	if (nic)
		make_late(nic, &watchdog->timer);
	__real_qdisc_watchdog_schedule_range_ns(watchdog, expires, delta_ns);
}

/* The device's entry, a new one if it has none.  Under RTNL. */
static struct nic *entry_of(struct net_device *dev)
{
	struct nic *nic = nic_of(dev);

	if (nic)
		return nic;
	nic = kzalloc(sizeof(*nic), GFP_KERNEL);
	if (!nic)
		return NULL;
	nic->dev = dev;
	INIT_LIST_HEAD(&nic->lines);
	__skb_queue_head_init(&nic->held);
	begin_line(&nic->own, nic, NULL);
	nic->jitter = (struct jitter){ .distribution = EXPONENTIAL, .tail_every = 1000, .seed = 1 };
	list_add(&nic->in_all, &all);
	return nic;
}

int testctl_get_coalesce(struct net_device *dev, struct ethtool_coalesce *to, struct kernel_ethtool_coalesce *kernel,
			 struct netlink_ext_ack *why);
int testctl_set_coalesce(struct net_device *dev, struct ethtool_coalesce *from, struct kernel_ethtool_coalesce *kernel,
			 struct netlink_ext_ack *why);

int testctl_get_coalesce(struct net_device *dev, struct ethtool_coalesce *to, struct kernel_ethtool_coalesce *kernel,
			 struct netlink_ext_ack *why)
{
	const struct nic *nic = nic_of(dev);

	to->rx_coalesce_usecs = nic ? nic->rx_usecs : 0;
	to->rx_max_coalesced_frames = nic ? nic->rx_frames : 0;
	return 0;
}

int testctl_set_coalesce(struct net_device *dev, struct ethtool_coalesce *from, struct kernel_ethtool_coalesce *kernel,
			 struct netlink_ext_ack *why)
{
	struct nic *nic;

	if (from->rx_coalesce_usecs > LONGEST_NS / 1000) {
		NL_SET_ERR_MSG(why, "rx-usecs: at most a second");
		return -ERANGE;
	}
	if (from->rx_max_coalesced_frames > 1 && !from->rx_coalesce_usecs) {
		NL_SET_ERR_MSG(why, "rx-frames without rx-usecs: the last packets would wait for ever");
		return -EINVAL;
	}
	nic = entry_of(dev);
	if (!nic)
		return -ENOMEM;
	nic->rx_usecs = from->rx_coalesce_usecs;
	nic->rx_frames = from->rx_max_coalesced_frames;
	return 0;
}

static int parse(char *words, char **device, struct jitter *j)
{
	char *word[7];
	int i, distribution;

	for (i = 0; i < ARRAY_SIZE(word); i++) {
		word[i] = strsep(&words, " ");
		if (!word[i])
			return -EINVAL;
	}
	if (words)
		return -EINVAL;
	*device = word[0];
	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++)
		if (!strcmp(names[distribution], word[1]))
			break;
	if (distribution == DISTRIBUTIONS || kstrtou64(word[2], 10, &j->mean_ns) || kstrtou64(word[3], 10, &j->tail_ns) ||
	    kstrtou32(word[4], 10, &j->tail_every) || kstrtou64(word[5], 10, &j->seed) ||
	    kstrtou64(word[6], 10, &j->stream))
		return -EINVAL;
	j->distribution = distribution;
	if (j->mean_ns > LONGEST_NS || j->tail_ns > LONGEST_NS || !j->tail_every || j->tail_every > MOST_EVERY)
		return -ERANGE;
	return 0;
}

static int set_jitter(const char *value, const struct kernel_param *param)
{
	char *text = kstrdup(value, GFP_KERNEL), *name = NULL;
	struct net_device *dev;
	struct jitter jitter;
	struct nic *nic;
	int error;

	if (!text)
		return -ENOMEM;
	error = parse(strim(text), &name, &jitter);
	if (error)
		goto out;
	rtnl_lock();
	dev = __dev_get_by_name(current->nsproxy->net_ns, name);
	nic = dev ? entry_of(dev) : NULL;
	if (nic) {
		nic->jitter = jitter;
		begin_stream(nic, 0);
	} else {
		error = dev ? -ENOMEM : -ENODEV;
	}
	rtnl_unlock();
out:
	kfree(text);
	return error;
}

/* Those of the reader's network namespace, a line each. */
static int get_jitter(char *to, const struct kernel_param *param)
{
	const struct jitter *j;
	struct nic *nic;
	int length = 0;

	rtnl_lock();
	list_for_each_entry(nic, &all, in_all) {
		j = &nic->jitter;
		if (net_eq(dev_net(nic->dev), current->nsproxy->net_ns))
			length += scnprintf(to + length, PAGE_SIZE - length, "%s %s %llu %llu %u %llu %llu\n",
					    nic->dev->name, names[j->distribution], j->mean_ns, j->tail_ns,
					    j->tail_every, j->seed, j->stream);
	}
	rtnl_unlock();
	return length;
}

static const struct kernel_param_ops jitter_ops = { .set = set_jitter, .get = get_jitter };
module_param_cb(jitter, &jitter_ops, NULL, 0600);

static int restart(const char *value, const struct kernel_param *param)
{
	struct nic *nic;
	u64 number;
	int error = kstrtou64(value, 10, &number);

	if (error)
		return error;
	rtnl_lock();
	list_for_each_entry(nic, &all, in_all)
		begin_stream(nic, number);
	rtnl_unlock();
	return 0;
}

static const struct kernel_param_ops restart_ops = { .set = restart };
module_param_cb(restart, &restart_ops, NULL, 0200);

/* The device is closed: its NAPIs are off, and what they waited for has passed. */
static void forget(struct nic *nic)
{
	struct late_timer *late, *next_late;
	struct line *line, *next_line;

	list_del(&nic->in_all);
	hrtimer_cancel(&nic->own.timer);
	__skb_queue_purge(&nic->held);
	list_for_each_entry_safe(line, next_line, &nic->lines, in_nic) {
		hrtimer_cancel(&line->timer);
		kfree(line);
	}
	list_for_each_entry_safe(late, next_late, &late_timers, in_all)
		if (late->nic == nic) {
			list_del(&late->in_all);
			kfree(late);
		}
	kfree(nic);
}

static int device_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct nic *nic = event == NETDEV_UNREGISTER ? nic_of(netdev_notifier_info_to_dev(info)) : NULL;

	if (nic)
		forget(nic);
	return NOTIFY_DONE;
}

static struct notifier_block device_events = { .notifier_call = device_event };

static int __init interrupts_init(void)
{
	return register_netdevice_notifier(&device_events);
}
device_initcall(interrupts_init);
