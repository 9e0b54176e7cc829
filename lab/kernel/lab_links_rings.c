// SPDX-License-Identifier: GPL-2.0
/*
 * Packets between the kernels of a lab (lab_links.c): as records in the rings of the memory that the kernels share.
 *
 * A fragment of zeros, which is what the traffic generator sends, is not copied: every kernel has them (links_zeros).
 */
#include <linux/bits.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time-internal.h>

#include "links.h"

#define ZEROS BIT(31)

struct ring {
	u64 written;
	u8 pad[56];
	u64 read;
	u8 pad2[4096 - 72];
	u8 data[];
};

enum { PACKET, DONE, TAKEN };

/* A packet as it lies in memory, from its Ethernet header on: it must look the same where it arrives. */
struct image {
	u32 headroom;
	u32 linear;
	u32 end;		/* of the buffer, from its head on */
	u32 beside;		/* of truesize, what is not the buffer and its headers: these differ by version */
	u32 hash;
	u32 csum;
	u32 gso_type;
	u16 gso_size;
	u16 gso_segs;
	u8 ip_summed;
	u8 l4_hash;
	u8 sw_hash;
	u8 frags;
};

/*
 * What lies in a ring, a whole number of cache lines, so that this head is in one.  Behind a packet's head are its
 * fragments' bytes, u32 each, with ZEROS or not, and the packet without the fragments of zeros.
 */
struct record {
	u32 bytes;
	u16 kind;		/* TAKEN: its space may be used again */
	u16 link;
	u64 ns;
	union {
		struct image image;
		struct {
			u64 stage;	/* to which these kernels have come, by their bits */
			u64 kernels;
		};
	};
};
static_assert(sizeof(struct record) <= LINE);

/* What has been seen in a ring and has not arrived yet. */
struct arrival {
	struct time_travel_event event;
	struct list_head in_list;	/* of `waiting`, by time and link; then of `with`, then of `arrived` */
	struct list_head with;	/* it and what arrives at the same time, where it is the first */
	struct record record;
	u64 at;			/* in the ring from a kernel */
	u32 from;
	bool taken;		/* it is here, and no longer there */
	struct sk_buff *skb;	/* (owned) of a packet that is taken */
};

static u64 seen[MOST_KERNELS];	/* in the ring from each kernel */
static u64 free_to[MOST_KERNELS];	/* in the ring to each kernel, as far as was last looked */
static LIST_HEAD(waiting);
static LIST_HEAD(arrived);

static struct ring *ring_of(u32 from, u32 to)
{
	u32 number = links_memory->ring[from][to];

	return number ? (void *)links_memory + links_memory->ring_offset +
			(number - 1) * (PAGE_SIZE + (u64)links_memory->ring_bytes) : NULL;
}

static struct record *record_at(struct ring *ring, u64 at)
{
	return (void *)ring->data + (at & (links_memory->ring_bytes - 1));
}

/* UML leaves the kernel's memcpy as it is for the oldest processors. */
static void copy(void *to, const void *from, unsigned long bytes)
{
	if (bytes < 128) {
		memcpy(to, from, bytes);
		return;
	}
	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* Out of a ring or into it, from a position on that only grows. */
static void copy_out(struct ring *ring, u64 *at, void *to, u32 bytes)
{
	u32 mask = links_memory->ring_bytes - 1, first = min_t(u32, bytes, mask + 1 - (*at & mask));

	copy(to, ring->data + (*at & mask), first);
	copy(to + first, ring->data, bytes - first);
	*at += bytes;
}

static void copy_in(struct ring *ring, u64 *at, const void *from, u32 bytes)
{
	u32 mask = links_memory->ring_bytes - 1, first = min_t(u32, bytes, mask + 1 - (*at & mask));

	copy(ring->data + (*at & mask), from, first);
	copy(ring->data, from + first, bytes - first);
	*at += bytes;
}

/* What the traffic generator sends is zeros.  `at` need not be aligned. */
static bool are_zeros(const void *at, u32 bytes)
{
	const u64 *word = at;

	if (bytes > LINKS_ZEROS)
		return false;
	for (; bytes >= LINE; bytes -= LINE, word += LINE / sizeof(*word))
		if (((word[0] | word[1]) | (word[2] | word[3])) | ((word[4] | word[5]) | (word[6] | word[7])))
			return false;
	return !memchr_inv(word, 0, bytes);
}

/* NULL: no memory, or too many fragments. */
static struct sk_buff *skb_from(struct ring *ring, u64 at, const struct image *image)
{
	struct skb_shared_info *info;
	u32 frag[MAX_SKB_FRAGS], bytes, i;
	struct sk_buff *skb;
	struct page *page;
	void *data;

	skb = image->frags <= MAX_SKB_FRAGS ? alloc_skb(image->end, GFP_ATOMIC) : NULL;
	if (!skb)
		return NULL;
	at += sizeof(struct record);
	copy_out(ring, &at, frag, image->frags * sizeof(*frag));
	skb_reserve(skb, image->headroom);
	copy_out(ring, &at, skb_put(skb, image->linear), image->linear);
	for (i = 0; i < image->frags; i++) {
		bytes = frag[i] & ~ZEROS;
		if (frag[i] & ZEROS) {
			get_page(links_zeros);
			skb_add_rx_frag(skb, i, links_zeros, 0, bytes, bytes);
			continue;
		}
		/* Small ones lie one behind the other, so that what waits for its time stays in the processor's cache. */
		data = bytes <= PAGE_SIZE / 2 ? netdev_alloc_frag(bytes) :
						(void *)__get_free_pages(GFP_ATOMIC | __GFP_COMP, get_order(bytes));
		if (!data)
			return NULL;
		copy_out(ring, &at, data, bytes);
		page = virt_to_head_page(data);
		skb_add_rx_frag(skb, i, page, data - page_address(page), bytes, bytes);
	}
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb)) + image->beside;
	__skb_set_hash(skb, image->hash, image->sw_hash, image->l4_hash);
	skb->ip_summed = image->ip_summed;
	skb->csum = (__force __wsum)image->csum;
	info = skb_shinfo(skb);
	info->gso_size = image->gso_size;
	info->gso_segs = image->gso_segs;
	info->gso_type = image->gso_type;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	return skb;
}

static void receive_arrived(struct tasklet_struct *unused)
{
	struct arrival *one, *after;
	LIST_HEAD(here);

	local_irq_disable();
	list_splice_init(&arrived, &here);
	local_irq_enable();
	list_for_each_entry_safe(one, after, &here, in_list) {
		if (one->skb) {
			links_deliver(one->record.link, one->skb);
		} else {
			local_irq_disable();
			links_done(one->record.stage, one->record.kernels);
			local_irq_enable();
		}
		kfree(one);
	}
}

static DECLARE_TASKLET(receiver, receive_arrived);

static void arrive(struct time_travel_event *event)
{
	list_splice_tail(&container_of(event, struct arrival, event)->with, &arrived);
	tasklet_hi_schedule(&receiver);
}

/* Take it out of its ring, whose writer may have its space once all before it have been taken, too. */
static void take(struct arrival *one)
{
	struct ring *ring = ring_of(one->from, links_self);
	u64 at = one->at;

	if (one->taken)
		return;
	if (one->record.kind == PACKET) {
		one->skb = skb_from(ring, at, &one->record.image);
		if (!one->skb)
			panic("testctl_links: no memory for a packet that arrives, or too many fragments\n");
	}
	one->taken = true;
	if (at != ring->read) {
		record_at(ring, at)->kind = TAKEN;
		return;
	}
	do
		at += record_at(ring, at)->bytes;
	while (at != seen[one->from] && record_at(ring, at)->kind == TAKEN);
	store(&ring->read, at);
}

u64 links_next_ns(void)
{
	return list_empty(&waiting) ? NEVER : list_first_entry(&waiting, struct arrival, in_list)->record.ns;
}

void links_arrive(u64 ns)
{
	struct arrival *first = list_first_entry(&waiting, struct arrival, in_list), *one;

	if (ns < time_travel_time)
		panic("testctl_links: link %u: a packet of %llu at %llu\n", first->record.link, ns, time_travel_time);
	list_for_each_entry(one, &waiting, in_list) {
		if (one->record.ns != ns)
			break;
		take(one);
	}
	list_cut_before(&first->with, &waiting, &one->in_list);
	time_travel_add_event_rel(&first->event, ns - time_travel_time);
	list_move(&first->event.list, &time_travel_events);
}

/*
 * What is made long before it arrives has left the processor's cache when it is used, so it stays in its ring; but a
 * ring is never more than half full of it.
 */
bool links_look(void)
{
	const struct record *record;
	struct arrival *fresh, *one;
	struct ring *ring;
	bool new = false;
	u32 from;

	for (from = 0; from < links_memory->kernels; from++) {
		ring = ring_of(from, links_self);
		if (!ring)
			continue;
		for (; seen[from] != load(&ring->written); seen[from] += record->bytes) {
			record = record_at(ring, seen[from]);
			fresh = kmalloc(sizeof(*fresh), GFP_ATOMIC);
			if (!fresh)
				panic("testctl_links: no memory for what arrives\n");
			*fresh = (struct arrival){ .record = *record, .at = seen[from], .from = from };
			time_travel_set_event_fn(&fresh->event, arrive);
			list_for_each_entry_reverse(one, &waiting, in_list)
				if (one->record.ns < record->ns ||
				    (one->record.ns == record->ns && one->record.link <= record->link))
					break;
			list_add(&fresh->in_list, &one->in_list);
			new = true;
		}
		if (seen[from] - ring->read <= links_memory->ring_bytes / 2)
			continue;
		list_for_each_entry(one, &waiting, in_list)
			if (one->from == from)
				take(one);
	}
	return new;
}

/* Begin a record of this many bytes in the ring to a kernel; NULL: it has left. */
static struct ring *begin_record(u32 kernel, const struct record *record)
{
	struct ring *ring = ring_of(links_self, kernel);

	while (!load(&links_memory->member[kernel].left)) {
		if (free_to[kernel] - ring->written < record->bytes)
			free_to[kernel] = load(&ring->read) + links_memory->ring_bytes;
		if (free_to[kernel] - ring->written >= record->bytes) {
			*record_at(ring, ring->written) = *record;
			return ring;
		}
		links_let_read(kernel);
		links_look();	/* the other one may wait for space, too */
		syscall(SYS_SCHED_YIELD);
	}
	return NULL;
}

void links_send(u32 kernel, u16 link, const struct sk_buff *skb, u32 before, u64 ns)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct record record = {
		.kind = PACKET,
		.link = link,
		.ns = ns,
		.image = {
			.headroom = skb_headroom(skb) - before,
			.linear = skb_headlen(skb) + before,
			.end = skb_end_offset(skb),
			.beside = skb->truesize - SKB_TRUESIZE(skb_end_offset(skb)),
			.hash = skb->hash,
			.csum = (__force u32)skb->csum,
			.gso_type = info->gso_type,
			.gso_size = info->gso_size,
			.gso_segs = info->gso_segs,
			.ip_summed = skb->ip_summed,
			.l4_hash = skb->l4_hash,
			.sw_hash = skb->sw_hash,
			.frags = info->nr_frags,
		},
	};
	u32 frag[MAX_SKB_FRAGS], bytes = record.image.linear, i;
	struct ring *ring;
	u64 at;

	if (WARN_ON_ONCE(skb_has_frag_list(skb) || skb_vlan_tag_present(skb)))
		return;
	if (ns < later(time_travel_time, links_memory->distance[links_self][kernel]))
		panic("testctl_links: link %u: a packet at %llu for %llu, before its delay is over\n", link,
		      time_travel_time, ns);
	for (i = 0; i < info->nr_frags; i++) {
		frag[i] = skb_frag_size(&info->frags[i]);
		if (are_zeros(skb_frag_address(&info->frags[i]), frag[i]))
			frag[i] |= ZEROS;
		else
			bytes += frag[i];
	}
	record.bytes = ALIGN(sizeof(record) + i * sizeof(*frag) + bytes, LINE);
	ring = begin_record(kernel, &record);
	if (!ring)
		return;
	at = ring->written + sizeof(record);
	copy_in(ring, &at, frag, info->nr_frags * sizeof(*frag));
	copy_in(ring, &at, skb->data - before, record.image.linear);
	for (i = 0; i < info->nr_frags; i++)
		if (!(frag[i] & ZEROS))
			copy_in(ring, &at, skb_frag_address(&info->frags[i]), frag[i]);
	store(&ring->written, ring->written + record.bytes);
	links_sent(kernel, ns);
}

void links_send_done(u32 kernel, u64 stage, u64 kernels, u64 ns)
{
	struct record record = { .bytes = LINE, .kind = DONE, .ns = ns, .stage = stage, .kernels = kernels };
	struct ring *ring = begin_record(kernel, &record);

	if (!ring)
		return;
	store(&ring->written, ring->written + record.bytes);
	links_sent(kernel, ns);
}
