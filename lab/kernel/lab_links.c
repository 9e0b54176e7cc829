// SPDX-License-Identifier: GPL-2.0
/*
 * Several kernels in one virtual time: the links between them.
 *
 * A lab may have a kernel for each of its hosts and switches.  Each has the namespaces and veth pairs of the whole
 * topology, but programs and settings for its own entities alone; the others are empty.  Where one end of a pair is
 * the kernel's own and the other is not, what it sends is written to a ring that the kernels share (lab_links_rings.c),
 * with the virtual time at which it arrives; the other kernel lets its own copy of the sending device send it, at that
 * time (lab_links_time.c).
 *
 * A switch's port knows when a packet will arrive as soon as its place in the queue is known (`ahead`): the time
 * stamp that the switch's program gave it for fq, or the end of its serialisation by testctl_port.  It is announced
 * then; that gives the other kernel the delay of the link to run ahead in.
 *
 * /sys/module/testctl_links/parameters/link, beside those of lab_links_time.c: write "NUMBER KERNEL AHEAD OWN OTHER":
 * this network namespace has the device OWN or OTHER (the other word is "-") of a link to that kernel; AHEAD is 1 where
 * a port announces.
 *
 * testctl_links.apart=1 on the command line (lab_links.h) is for comparing the packets of several kernels with one's.
 */
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "links.h"

struct link {
	struct list_head in_all;
	u16 number;
	u16 kernel;
	bool ahead;
	u32 announced;		/* and not arrived at the end of the device */
	struct net_device *own, *other;
};

bool testctl_apart;
module_param_named(apart, testctl_apart, bool, 0400);

static LIST_HEAD(links);	/* changed under RTNL; UML has one processor */

static void send(const struct link *link, const struct sk_buff *skb, u32 before, u64 ns)
{
	unsigned long flags;

	if (!links_together)
		return;
	local_irq_save(flags);
	links_send(link->kernel, link->number, skb, before, ns);
	local_irq_restore(flags);
}

bool testctl_links_receive(struct sk_buff *skb)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->other == skb->dev)
			goto found;
	return false;
found:
	if (!link->ahead)
		send(link, skb, skb->data - skb_mac_header(skb), time_travel_time);
	else if (link->announced)
		link->announced--;
	else if (links_together)
		WARN_ONCE(1, "testctl_links: link %u: a packet was not announced, and is lost\n", link->number);
	consume_skb(skb);
	return true;
}

void testctl_links_announce(const struct net_device *dev, const struct sk_buff *skb, u64 ns)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->own == dev && link->ahead) {
			link->announced++;
			send(link, skb, 0, ns + links_boot_ns);
			return;
		}
}

int __real___dev_queue_xmit(struct sk_buff *skb, struct net_device *to);
int __wrap___dev_queue_xmit(struct sk_buff *skb, struct net_device *to);

/* A switch's program has given the packet its time. */
int __wrap___dev_queue_xmit(struct sk_buff *skb, struct net_device *to)
{
	if (skb->tstamp)
		testctl_links_announce(skb->dev, skb, skb->tstamp);
	return __real___dev_queue_xmit(skb, to);
}

static struct link *by_number(u16 number)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->number == number)
			return link;
	return NULL;
}

void links_deliver(u16 number, struct sk_buff *skb)
{
	struct link *link = by_number(number);

	if (!link || !link->other) {
		kfree_skb(skb);
		return;
	}
	skb->dev = link->other;
	netdev_start_xmit(skb, skb->dev, netdev_get_tx_queue(skb->dev, 0), false);
}

static int set_link(const char *value, const struct kernel_param *param)
{
	char own[IFNAMSIZ + 1], other[IFNAMSIZ + 1];
	u32 number, kernel, ahead;
	struct net_device *dev;
	struct link *link;
	bool is_own;
	int error = 0;

	if (sscanf(value, "%u %u %u %16s %16s", &number, &kernel, &ahead, own, other) != 5 || number > U16_MAX)
		return -EINVAL;
	if (!links_memory || kernel >= links_memory->kernels || !links_memory->ring[links_self][kernel])
		return -ENXIO;
	is_own = strcmp(own, "-");
	rtnl_lock();
	dev = __dev_get_by_name(current->nsproxy->net_ns, is_own ? own : other);
	link = by_number(number);
	if (dev && !link) {
		link = kzalloc(sizeof(*link), GFP_KERNEL);
		if (link)
			list_add_tail(&link->in_all, &links);
	}
	if (dev && link) {
		link->number = number;
		link->kernel = kernel;
		link->ahead = ahead;
		*(is_own ? &link->own : &link->other) = dev;
		if (!is_own)	/* what is too large for the real one is dropped where that is */
			error = dev_set_mtu(dev, dev->max_mtu);
	} else {
		error = dev ? -ENOMEM : -ENODEV;
	}
	rtnl_unlock();
	return error;
}

static const struct kernel_param_ops link_ops = { .set = set_link };
module_param_cb(link, &link_ops, NULL, 0200);
