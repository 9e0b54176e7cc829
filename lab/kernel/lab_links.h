/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Links between the kernels of one lab: what a device, a port's qdisc and the virtual clock tell lab_links.c.
 */
#ifndef TESTCTL_LAB_LINKS_H
#define TESTCTL_LAB_LINKS_H

#include <linux/skbuff.h>
#include <linux/types.h>

/*
 * Hosts of one kernel are to each other as those of several: a reading of the clock and a system call that fails take no
 * time, a packet shares no buffer with the queue that it was sent from, and what is drawn at random hangs on the time alone
 * (lab_random.c), secrets not even on that.
 */
extern bool testctl_apart;

/*
 * Virtual time is to become ns: return when nothing that arrives earlier can be unknown.  What arrives earlier is an
 * event by then (arch/um/kernel/time.c looks for new ones afterwards).
 */
void testctl_links_advance(unsigned long long ns);

/* A device has got a packet; true: the receiver is in another kernel, and the packet is freed. */
bool testctl_links_receive(struct sk_buff *skb);

/* It is known that a packet of this device will reach the other kernel at ns (CLOCK_MONOTONIC). */
void testctl_links_announce(const struct net_device *dev, const struct sk_buff *skb, u64 ns);

#endif
