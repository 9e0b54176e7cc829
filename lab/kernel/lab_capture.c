// SPDX-License-Identifier: GPL-2.0
/*
 * The frames at a device, as a socket of AF_PACKET gets them, in a file of the machine.
 *
 * /proc/testctl_capture (lab_host_file.h), words "DEVICE SNAP_BYTES WHICH": a device of the
 * writer's network namespace, the bytes of a frame that are kept, and "tcp" or "all".  WHICH tcp
 * is what tcpdump takes for the filter "tcp".  Counters, as tcpdump's: captured, written to the
 * file; received, matched (at lo twice as many: each frame leaves and comes, and its coming is
 * written); dropped, not written because the file could not be.
 *
 * The file is classic pcap with nanoseconds (draft-ietf-opsawg-pcap).  A frame's stamp is the one
 * that it carries, if any, or the clock's: read in a softirq, which does not move it.
 *
 * Unlike libpcap's, a frame's VLAN tag that the device has taken off is not put in again.
 */
#include <linux/bottom_half.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>

#include "lab_host_file.h"

#define MOST_SNAP_BYTES 262144
#define MOST_KEPT_BYTES (LAB_FILE_BYTES - sizeof(struct pcap_record))
#define LOOKED_AT_BYTES (ETH_HLEN + 40 + 1)	/* of a frame: up to where an IPv6 fragment has its protocol */

struct pcap_head {
	u32 magic;
	u16 major;
	u16 minor;
	u32 zone;
	u32 accuracy;
	u32 snap_bytes;
	u32 link;
};

struct pcap_record {
	u32 seconds;
	u32 ns;
	u32 kept;
	u32 length;
	u8 frame[];
};

struct capture {
	struct lab_recorder recorder;
	struct packet_type hook;	/* its dev (owned), NULL: gone */
	struct list_head in_all;
	u32 snap_bytes;
	bool tcp_only;
	u64 captured;
	u64 received;
	u64 dropped;
};

static LIST_HEAD(all);	/* under RTNL */

static bool is_tcp(const u8 *frame, u32 length)
{
	const u8 *ip = frame + ETH_HLEN;

	if (length <= ETH_HLEN + 9)
		return false;
	switch (frame[12] << 8 | frame[13]) {
	case ETH_P_IP:
		return ip[9] == IPPROTO_TCP;
	case ETH_P_IPV6:
		return ip[6] == IPPROTO_TCP ||
		       (ip[6] == IPPROTO_FRAGMENT && length >= LOOKED_AT_BYTES && ip[40] == IPPROTO_TCP);
	}
	return false;
}

static void write_frame(struct capture *c, const struct sk_buff *skb)
{
	u32 before = skb->data - skb_mac_header(skb), length = before + skb->len;
	u32 kept = min3(length, c->snap_bytes, (u32)MOST_KEPT_BYTES);
	u32 copied = min(length, max_t(u32, kept, LOOKED_AT_BYTES));
	struct pcap_record *record = lab_file_space(&c->recorder.file, sizeof(*record) + copied);
	struct timespec64 at;
	ktime_t stamp;
	u8 looked_at[LOOKED_AT_BYTES], *to = record ? record->frame : looked_at;

	if (!record)
		copied = min_t(u32, length, LOOKED_AT_BYTES);
	before = min(before, copied);
	memcpy(to, skb_mac_header(skb), before);
	if (skb_copy_bits(skb, 0, to + before, copied - before))
		return;
	if (c->tcp_only && !is_tcp(to, copied))
		return;
	c->received++;
	if (skb->pkt_type == PACKET_OUTGOING && (skb->dev->flags & IFF_LOOPBACK))
		return;
	if (!record) {
		c->dropped++;
		return;
	}
	stamp = skb_tstamp(skb);
	at = ktime_to_timespec64(stamp ? stamp : ktime_get_real());
	record->seconds = at.tv_sec;
	record->ns = at.tv_nsec;
	record->kept = kept;
	record->length = length;
	lab_file_put(&c->recorder.file, sizeof(*record) + kept);
	c->captured++;
}

static int tap(struct sk_buff *skb, struct net_device *dev, struct packet_type *hook, struct net_device *orig)
{
	if (skb->pkt_type != PACKET_LOOPBACK)
		write_frame(container_of(hook, struct capture, hook), skb);
	consume_skb(skb);
	return 0;
}

/* Under RTNL. */
static void unhook(struct capture *c)
{
	if (!c->hook.dev)
		return;
	dev_remove_pack(&c->hook);
	dev_put(c->hook.dev);
	c->hook.dev = NULL;
}

static int parse(struct capture *c, char *words, char **device)
{
	char *snap, *which;

	*device = strsep(&words, " ");
	snap = strsep(&words, " ");
	which = strsep(&words, " ");
	if (!which || words || kstrtou32(snap, 10, &c->snap_bytes))
		return -EINVAL;
	if (!c->snap_bytes || c->snap_bytes > MOST_SNAP_BYTES)
		return -ERANGE;
	c->tcp_only = !strcmp(which, "tcp");
	return c->tcp_only || !strcmp(which, "all") ? 0 : -EINVAL;
}

static void write_head(struct capture *c)
{
	struct pcap_head head = {
		.magic = 0xa1b23c4d, .major = 2, .minor = 4, .snap_bytes = c->snap_bytes, .link = 1 /* Ethernet */,
	};

	local_bh_disable();
	memcpy(lab_file_space(&c->recorder.file, sizeof(head)), &head, sizeof(head));
	lab_file_put(&c->recorder.file, sizeof(head));
	local_bh_enable();
}

static int capture_begin(struct lab_recorder *recorder, char *words)
{
	struct capture *c = container_of(recorder, struct capture, recorder);
	struct net_device *device;
	char *name;
	int error = parse(c, words, &name);

	if (error)
		return error;
	device = dev_get_by_name(recorder->net, name);
	if (!device)
		return -ENODEV;
	if (device->type != ARPHRD_ETHER && device->type != ARPHRD_LOOPBACK) {
		dev_put(device);
		return -EMEDIUMTYPE;
	}
	c->captured = 0;
	c->received = 0;
	c->dropped = 0;
	write_head(c);
	c->hook = (struct packet_type){ .type = htons(ETH_P_ALL), .dev = device, .func = tap };
	rtnl_lock();
	list_add(&c->in_all, &all);
	dev_add_pack(&c->hook);
	rtnl_unlock();
	return 0;
}

static void capture_end(struct lab_recorder *recorder)
{
	struct capture *c = container_of(recorder, struct capture, recorder);

	rtnl_lock();
	unhook(c);
	list_del(&c->in_all);
	rtnl_unlock();
}

static int capture_tell(const struct lab_recorder *recorder, char *text, u32 size)
{
	const struct capture *c = container_of(recorder, struct capture, recorder);

	return scnprintf(text, size, "captured=%llu\nreceived=%llu\ndropped=%llu\n", c->captured, c->received,
			 c->dropped);
}

/* A device that goes does not wait for who captures at it. */
static int device_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct capture *c;

	if (event == NETDEV_UNREGISTER)
		list_for_each_entry(c, &all, in_all)
			if (c->hook.dev == netdev_notifier_info_to_dev(info))
				unhook(c);
	return NOTIFY_DONE;
}

static struct notifier_block device_events = { .notifier_call = device_event };

static const struct lab_recorder_type capture_type = {
	.name = "testctl_capture",
	.bytes = sizeof(struct capture),
	.begin = capture_begin,
	.end = capture_end,
	.tell = capture_tell,
};

static int __init capture_init(void)
{
	int error = register_netdevice_notifier(&device_events);

	BUILD_BUG_ON(sizeof(struct pcap_head) != 24 || sizeof(struct pcap_record) != 16);
	return error ? error : lab_recorder_register(&capture_type);
}
device_initcall(capture_init);
