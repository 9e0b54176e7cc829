// SPDX-License-Identifier: GPL-2.0
/*
 * Several kernels in one virtual time.
 *
 * A lab may have a kernel for each of its hosts and switches.  Each has the namespaces and veth pairs of the whole
 * topology, but programs and settings for its own entities alone; the others are empty.  Where one end of a pair is
 * the kernel's own and the other is not, what it sends is written to a ring that the kernels share, with the virtual
 * time at which it arrives; the other kernel lets its own copy of the sending device send it, at that time.
 *
 * Time is synchronised conservatively (Chandy and Misra 1979): nothing is ever rolled back.  Each kernel tells the
 * time of its next event, before which it sends nothing.  What kernel j sends reaches kernel i at the earliest
 * distance[j][i] later, the sum of the delays on the way.  So i knows what arrives before
 *
 *	horizon = min over j of (next[j] + distance[j][i])
 *
 * and may do what is due before.  A kernel tells its time when an eighth of its least distance has passed, or when
 * somebody waits for just that time.  What arrives at a time is received before the kernel's own events of that time, as a
 * packet is that comes while a timer's interrupt waits for its softirq; ordered by link and then as it was sent.  The
 * delay of a link is its switch port's: a host's packet reaches its switch at once, which is allowed as long as no way
 * around has distance 0.
 *
 * A switch's port knows when a packet will arrive as soon as its place in the queue is known (`ahead`): the time
 * stamp that the switch's program gave it for fq, or the end of its serialisation by testctl_port.  It is announced
 * then; that gives the other kernel the delay of the link to run ahead in.
 *
 * A kernel that may not go on spins for a while and then waits for a futex.  The kernel on whose time that hangs has in
 * `wake_at_ns` when it matters, and then looks which others may go on.  To wake one costs as much as several packets, so
 * it does so when there is half a delay's time to do, or when it has to wait itself: then for all that may go on.
 *
 * Files, in /sys/module/testctl_links/parameters:
 *	memory	write "INDEX PATH": the file that the kernels share, as testctl/lab/shared_time.py makes it
 *	link	write "NUMBER KERNEL AHEAD OWN OTHER": this network namespace has the device OWN or OTHER (the other word is
 *		"-") of a link to that kernel; AHEAD is 1 where a port announces
 *	join	write: begin together; returns when all have
 *	done	write "STAGE", 0 or 1: this kernel has come that far; returns, in virtual time, when all have
 *	leave	write: no longer wait for the others, and drop what comes
 *	waited_ns	read: how long this kernel waited for others, by the machine's clock
 *
 * testctl_links.apart=1 on the command line (lab_links.h) is for comparing the packets of several kernels with one's.
 */
#include <linux/bits.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time-internal.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <os.h>

#include "lab_links.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_links."

#define MOST_KERNELS 64
#define FORMAT 0x314b4e4c	/* "LNK1" */
#define NEVER S64_MAX
#define STAGES 2
#define LINE 64			/* bytes of a cache line */
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define SYS_SCHED_YIELD 24
#define SYS_FUTEX 202
#define SYS_CLOCK_GETTIME 228
#define PROT_READ_WRITE 3
#define MAP_SHARED_FILE 1

/* One cache line of the shared memory for each kernel. */
struct member {
	u64 next_ns;		/* nothing is done or sent before */
	u64 need_ns;		/* the horizon that it waits for */
	u64 wake_at_ns;		/* once next_ns comes here, others may go on */
	u32 blocked;
	u32 word;		/* of the futex: how often it was released */
	u32 left;
	u32 asleep;		/* in the machine's kernel, not spinning */
	u32 pad[6];
};

struct shared {
	u32 format;
	u32 kernels;
	u32 ring_bytes;		/* a power of two */
	u32 spins;		/* before a kernel that waits lets the processor go */
	u32 lock;
	u32 joined;
	u64 ring_offset;	/* of ring 0 in the file; each has a page and ring_bytes */
	u64 bytes;		/* of the file */
	u32 turns;		/* on one processor: a kernel runs as far as it may, then the others */
	u8 pad[20];
	struct member member[MOST_KERNELS];
	u64 distance[MOST_KERNELS][MOST_KERNELS];	/* [from][to] */
	u32 ring[MOST_KERNELS][MOST_KERNELS];		/* [from][to]: its number from 1 on; 0: no link */
};

struct ring {
	u64 written;
	u8 pad[56];
	u64 read;
	u8 pad2[4096 - 72];
	u8 data[];
};

enum { PACKET, DONE, TAKEN };

#define ZEROS BIT(31)
#define MOST_ZEROS 65536

/* A packet as it lies in memory, from its Ethernet header on: it must look the same where it arrives. */
struct image {
	u32 headroom;
	u32 linear;
	u32 end;		/* of the buffer, from its head on */
	u32 beside;		/* of truesize, what is not the buffer and its headers: these differ by version */
	u32 hash;
	u32 gso_type;
	u16 gso_size;
	u16 gso_segs;
	u16 csum_start;		/* from the buffer's head on */
	u16 csum_offset;
	u8 ip_summed;
	u8 l4_hash;
	u8 sw_hash;
	u8 frags;
};

/* Which kernels have come to a stage, by their bits. */
struct done {
	u64 stage;
	u64 kernels;
};

/*
 * What lies in a ring, a whole number of cache lines, so that this head is in one.  Behind a packet's head are its
 * fragments' bytes, u32 each, and the packet, without the fragments of zeros (ZEROS), which every kernel has.
 */
struct record {
	u32 bytes;
	u16 kind;
	u16 link;
	u64 ns;
	union {
		struct image image;
		struct done done;
	};
};
static_assert(sizeof(struct record) <= LINE);

/* What has been seen in a ring and has not arrived yet. */
struct arrival {
	struct time_travel_event event;
	struct list_head in_list;	/* of `waiting`, by time and link; then of `with` or `arrived` */
	struct list_head with;	/* what arrives at the same time, behind it */
	u64 ns;
	u64 at;			/* in the ring from a kernel */
	u32 from;
	u16 kind;		/* TAKEN: it is here, and no longer there */
	u16 link;
	struct done done;
	struct sk_buff *skb;	/* (owned); NULL: `done` */
};

struct link {
	struct list_head in_all;
	u16 number;
	u16 kernel;
	bool ahead;
	u32 announced;		/* and not arrived at the end of the device */
	struct net_device *own, *other;
};

extern unsigned long long time_travel_time;
extern struct list_head time_travel_events;
extern long syscall(long number, ...);
extern void *mmap(void *at, unsigned long bytes, int prot, int flags, int fd, long offset);

bool testctl_apart;
module_param_named(apart, testctl_apart, bool, 0400);

static struct shared *shared;
static u32 self;
static bool together;
static u64 horizon;
static u64 quiet_ns;		/* before, there is nothing to receive, to wait for or to tell */
static u64 publish_every_ns;	/* of virtual time; 0 where something is sent on without a delay */
static u64 sent_to;		/* since it was looked whether they wait; and what arrives first of that */
static u64 sent_ns[MOST_KERNELS];
static u64 boot_ns;		/* time_travel_time of CLOCK_MONOTONIC's 0 */
static LIST_HEAD(links);	/* changed under RTNL; UML has one processor */
static u64 seen[MOST_KERNELS];	/* in the ring from each kernel */
static u64 free_to[MOST_KERNELS];	/* in the ring to each kernel, as far as was last looked */
static LIST_HEAD(waiting);
static LIST_HEAD(arrived);
static u64 done_kernels[STAGES];
static DECLARE_WAIT_QUEUE_HEAD(all_done);
static struct page *zeros;	/* MOST_ZEROS, which nobody writes to */

static u64 waited_ns;
module_param(waited_ns, ullong, 0400);

static void receive_arrived(struct tasklet_struct *unused);
static DECLARE_TASKLET(receiver, receive_arrived);

#define load(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define store(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

static struct member *member(u32 kernel)
{
	return &shared->member[kernel];
}

static struct ring *ring_of(u32 from, u32 to)
{
	u32 number = shared->ring[from][to];

	return number ? (void *)shared + shared->ring_offset + (number - 1) * (PAGE_SIZE + (u64)shared->ring_bytes) : NULL;
}

static u64 later(u64 ns, u64 by)
{
	return ns >= NEVER || by >= NEVER - ns ? NEVER : ns + by;
}

static void lock_shared(void)
{
	u32 tries = 0;

	while (__atomic_exchange_n(&shared->lock, 1, __ATOMIC_ACQUIRE))
		if (++tries % 64 == 0)
			syscall(SYS_SCHED_YIELD);
}

static void unlock_shared(void)
{
	store(&shared->lock, 0);
}

/* Until when kernel `to` knows what arrives, and whose time that hangs on. */
static u64 horizon_of(u32 to, u32 *by)
{
	u64 least = NEVER, ns;
	u32 from;

	*by = to;
	for (from = 0; from < shared->kernels; from++) {
		if (from == to)
			continue;
		ns = later(load(&member(from)->next_ns), shared->distance[from][to]);
		if (ns < least) {
			least = ns;
			*by = from;
		}
	}
	return least;
}

/*
 * Under the lock: let a kernel go on that waits, if it may, and has enough to do unless that is not asked; else the one
 * that it waits for will look again.
 */
static bool released(u32 kernel, bool enough)
{
	struct member *m = member(kernel);
	u64 need, from, until;
	u32 by;

	for (;;) {
		need = m->need_ns;
		until = horizon_of(kernel, &by);
		from = shared->distance[by][kernel];
		if (enough)
			need = later(need, from / 2);
		if (until >= need)
			break;
		if (need - from < member(by)->wake_at_ns)
			store(&member(by)->wake_at_ns, need - from);
		fence();
		if (later(load(&member(by)->next_ns), from) < need)
			return false;
	}
	m->blocked = 0;
	store(&m->word, m->word + 1);
	return true;
}

static void wake(u64 kernels)
{
	u32 kernel;

	fence();
	for (kernel = 0; kernels; kernel++, kernels >>= 1)
		if (kernels & 1 && load(&member(kernel)->asleep))
			syscall(SYS_FUTEX, &member(kernel)->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Under the lock: those that may go on now that this kernel has come as far as it has. */
static u64 release_all(bool enough)
{
	u64 kernels = 0;
	u32 kernel;

	store(&member(self)->wake_at_ns, NEVER);
	fence();
	for (kernel = 0; kernel < shared->kernels; kernel++)
		if (kernel != self && member(kernel)->blocked && released(kernel, enough))
			kernels |= BIT_ULL(kernel);
	return kernels;
}

/*
 * Those that wait and do not know of what was sent to them.  Until this kernel has looked it says no later time, and
 * what it sent is no danger: an answer reaches a third kernel no earlier than what this one may still send.
 */
static void look_after_receivers(void)
{
	u64 to, kernels = 0;
	struct member *m;
	u32 kernel;

	if (!sent_to)
		return;
	fence();
	for (to = sent_to; to; to &= to - 1) {
		kernel = __ffs64(to);
		m = member(kernel);
		if (!load(&m->blocked))
			continue;
		lock_shared();
		if (m->blocked && sent_ns[kernel] < m->next_ns) {
			m->need_ns = sent_ns[kernel] + 1;
			store(&m->next_ns, sent_ns[kernel]);
			if (released(kernel, true))
				kernels |= BIT_ULL(kernel);
		}
		unlock_shared();
	}
	sent_to = 0;
	wake(kernels);
}

/* A fence waits for all that was written before, a packet's copy too: so there is one for many packets. */
static void publish(u64 next_ns)
{
	struct member *me = member(self);
	u64 kernels;

	if (shared->turns || (next_ns < later(me->next_ns, publish_every_ns) && next_ns < load(&me->wake_at_ns)))
		return;
	look_after_receivers();
	store(&me->next_ns, next_ns);
	fence();
	if (next_ns < load(&me->wake_at_ns))
		return;
	lock_shared();
	kernels = release_all(true);
	unlock_shared();
	wake(kernels);
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

static struct record *record_at(struct ring *ring, u64 at)
{
	return (void *)ring->data + (at & (shared->ring_bytes - 1));
}

/* Out of a ring or into it, at a position that only grows. */
static void copy_out(const struct ring *ring, u64 at, void *to, u32 bytes)
{
	u32 mask = shared->ring_bytes - 1, first = min_t(u32, bytes, shared->ring_bytes - (at & mask));

	copy(to, ring->data + (at & mask), first);
	if (first < bytes)
		copy(to + first, ring->data, bytes - first);
}

static void copy_in(struct ring *ring, u64 at, const void *from, u32 bytes)
{
	u32 mask = shared->ring_bytes - 1, first = min_t(u32, bytes, shared->ring_bytes - (at & mask));

	copy(ring->data + (at & mask), from, first);
	if (first < bytes)
		copy(ring->data, from + first, bytes - first);
}

/* Small ones lie one behind the other, so that what waits for its time stays in the processor's cache. */
static void *memory_for(u32 bytes)
{
	if (bytes <= PAGE_SIZE / 2)
		return netdev_alloc_frag(bytes);
	return (void *)__get_free_pages(GFP_ATOMIC | __GFP_COMP, get_order(bytes));
}

/* What the traffic generator sends is zeros.  `at` need not be aligned. */
static bool are_zeros(const void *at, u32 bytes)
{
	const u64 *word = at;

	if (bytes > MOST_ZEROS)
		return false;
	for (; bytes >= LINE; bytes -= LINE, word += LINE / sizeof(*word))
		if (((word[0] | word[1]) | (word[2] | word[3])) | ((word[4] | word[5]) | (word[6] | word[7])))
			return false;
	return !memchr_inv(word, 0, bytes);
}

static struct sk_buff *skb_from(struct ring *ring, u64 at)
{
	const struct image image = record_at(ring, at)->image;
	struct skb_shared_info *info;
	u32 frag[MAX_SKB_FRAGS];
	struct sk_buff *skb;
	struct page *page;
	void *data;
	u32 i;

	at += sizeof(struct record);
	if (image.frags > MAX_SKB_FRAGS)
		return NULL;
	copy_out(ring, at, frag, image.frags * sizeof(*frag));
	at += image.frags * sizeof(*frag);
	skb = alloc_skb(image.end, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_reserve(skb, image.headroom);
	copy_out(ring, at, skb_put(skb, image.linear), image.linear);
	at += image.linear;
	for (i = 0; i < image.frags; i++) {
		if (frag[i] & ZEROS) {
			frag[i] &= ~ZEROS;
			get_page(zeros);
			skb_add_rx_frag(skb, i, zeros, 0, frag[i], frag[i]);
			continue;
		}
		data = memory_for(frag[i]);
		if (!data) {
			kfree_skb(skb);
			return NULL;
		}
		copy_out(ring, at, data, frag[i]);
		at += frag[i];
		page = virt_to_head_page(data);
		skb_add_rx_frag(skb, i, page, data - page_address(page), frag[i], frag[i]);
	}
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb)) + image.beside;
	skb->hash = image.hash;
	skb->l4_hash = image.l4_hash;
	skb->sw_hash = image.sw_hash;
	skb->ip_summed = image.ip_summed;
	skb->csum_start = image.csum_start;
	skb->csum_offset = image.csum_offset;
	info = skb_shinfo(skb);
	info->gso_size = image.gso_size;
	info->gso_segs = image.gso_segs;
	info->gso_type = image.gso_type;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	return skb;
}

static void keep(struct arrival *fresh)
{
	struct arrival *one;

	list_for_each_entry_reverse(one, &waiting, in_list)
		if (one->ns < fresh->ns || (one->ns == fresh->ns && one->link <= fresh->link))
			break;
	list_add(&fresh->in_list, &one->in_list);
	quiet_ns = 0;
}

static void arrive(struct time_travel_event *event)
{
	struct arrival *one = container_of(event, struct arrival, event);

	list_add_tail(&one->in_list, &arrived);
	list_splice_tail(&one->with, &arrived);
	tasklet_hi_schedule(&receiver);
}

/* Take it out of its ring, whose writer may have its space once all before it have been taken, too. */
static void take(struct arrival *one)
{
	struct ring *ring = ring_of(one->from, self);
	struct record *record = record_at(ring, one->at);
	u64 at = one->at;

	if (one->kind == TAKEN)
		return;
	if (one->kind == DONE)
		one->done = record->done;
	else
		one->skb = skb_from(ring, one->at);
	if (one->kind == PACKET && !one->skb)
		panic("testctl_links: no memory for a packet that arrives, or too many fragments\n");
	one->kind = TAKEN;
	if (at != ring->read) {
		record->kind = TAKEN;
		return;
	}
	do
		at += record_at(ring, at)->bytes;
	while (at != seen[one->from] && record_at(ring, at)->kind == TAKEN);
	store(&ring->read, at);
}

/*
 * See what the others have sent; with interrupts off.  It stays in its ring until it arrives, as a packet that is made
 * long before has left the processor's cache when it is used; but a ring is never more than half full of it.
 */
static void drain(void)
{
	const struct record *record;
	struct arrival *fresh, *one;
	struct ring *ring;
	u32 from;

	for (from = 0; from < shared->kernels; from++) {
		ring = ring_of(from, self);
		if (!ring)
			continue;
		for (; seen[from] != load(&ring->written); seen[from] += record->bytes) {
			record = record_at(ring, seen[from]);
			fresh = kmalloc(sizeof(*fresh), GFP_ATOMIC);
			if (!fresh)
				panic("testctl_links: no memory for what arrives\n");
			*fresh = (struct arrival){
				.ns = record->ns,
				.at = seen[from],
				.from = from,
				.kind = record->kind,
				.link = record->link,
			};
			time_travel_set_event_fn(&fresh->event, arrive);
			keep(fresh);
		}
		if (seen[from] - ring->read <= shared->ring_bytes / 2)
			continue;
		list_for_each_entry(one, &waiting, in_list)
			if (one->from == from)
				take(one);
	}
}

static bool any_unread(void)
{
	const struct ring *ring;
	u32 from;

	for (from = 0; from < shared->kernels; from++) {
		ring = ring_of(from, self);
		if (ring && seen[from] != load(&ring->written))
			return true;
	}
	return false;
}

static u64 machines_ns(void)
{
	long now[2];

	syscall(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, now);
	return now[0] * NSEC_PER_SEC + now[1];
}

/* Wait until the horizon may lie behind next_ns, before which this kernel does nothing. */
static void block(u64 next_ns)
{
	struct member *me = member(self);
	bool waits;
	u32 word, spins;
	u64 kernels;

	lock_shared();
	word = me->word;
	me->need_ns = later(next_ns, 1);
	store(&me->blocked, 1);
	fence();
	if (any_unread()) {
		/* One that did not know that this kernel waits: it may arrive before next_ns. */
		store(&me->blocked, 0);
		unlock_shared();
		return;
	}
	store(&me->next_ns, next_ns);
	waits = !released(self, false);
	kernels = release_all(false);
	unlock_shared();
	wake(kernels);
	if (!waits)
		return;
	waited_ns -= machines_ns();
	for (spins = shared->spins; spins && load(&me->word) == word; spins--)
		__builtin_ia32_pause();
	store(&me->asleep, 1);
	fence();
	while (load(&me->word) == word)
		syscall(SYS_FUTEX, &me->word, FUTEX_WAIT, word, NULL, NULL, 0);
	store(&me->asleep, 0);
	waited_ns += machines_ns();
}

void testctl_links_advance(unsigned long long ns)
{
	struct arrival *first, *one, *after;
	unsigned long flags;
	u64 next;
	u32 by;

	if (!together || (ns < quiet_ns && (shared->turns || ns < load(&member(self)->wake_at_ns))))
		return;
	local_irq_save(flags);
	for (;;) {
		first = list_first_entry_or_null(&waiting, struct arrival, in_list);
		next = first && first->ns < ns ? first->ns : ns;
		if (next < horizon || horizon == NEVER)
			break;
		look_after_receivers();
		horizon = horizon_of(self, &by);
		fence();
		drain();
		first = list_first_entry_or_null(&waiting, struct arrival, in_list);
		next = first && first->ns < ns ? first->ns : ns;
		if (next < horizon || horizon == NEVER)
			break;
		block(next);
	}
	if (first && first->ns == next) {
		if (next < time_travel_time)
			panic("testctl_links: link %u: a packet of %llu at %llu\n", first->link, next, time_travel_time);
		list_del(&first->in_list);
		INIT_LIST_HEAD(&first->with);
		take(first);
		list_for_each_entry_safe(one, after, &waiting, in_list) {
			if (one->ns != next)
				break;
			list_move_tail(&one->in_list, &first->with);
			take(one);
		}
		time_travel_add_event_rel(&first->event, next - time_travel_time);
		list_move(&first->event.list, &time_travel_events);
	}
	publish(next);
	first = list_first_entry_or_null(&waiting, struct arrival, in_list);
	quiet_ns = shared->turns ? horizon : min(horizon, later(member(self)->next_ns, publish_every_ns));
	if (first)
		quiet_ns = min(quiet_ns, first->ns);
	local_irq_restore(flags);
}

/* Begin a record of this many bytes in the ring to a kernel; NULL: it has left. */
static struct ring *begin_record(u32 kernel, const struct record *record)
{
	struct ring *ring = ring_of(self, kernel);
	struct member *m = member(kernel);
	u64 kernels;
	u32 by;

	while (!load(&m->left)) {
		if (free_to[kernel] - ring->written < record->bytes)
			free_to[kernel] = load(&ring->read) + shared->ring_bytes;
		if (free_to[kernel] - ring->written >= record->bytes) {
			*record_at(ring, ring->written) = *record;
			return ring;
		}
		kernels = 0;
		lock_shared();
		if (m->blocked) {
			/* It is to read its rings; what it does not know of arrives after its horizon. */
			store(&m->next_ns, min(m->next_ns, horizon_of(kernel, &by)));
			m->blocked = 0;
			store(&m->word, m->word + 1);
			kernels = BIT_ULL(kernel);
		}
		unlock_shared();
		wake(kernels);
		drain();	/* the other one may wait for space, too */
		syscall(SYS_SCHED_YIELD);
	}
	return NULL;
}

static void end_record(u32 kernel, struct ring *ring, const struct record *record)
{
	store(&ring->written, ring->written + record->bytes);
	horizon = min(horizon, later(record->ns, shared->distance[kernel][self]));
	quiet_ns = min(quiet_ns, horizon);
	sent_ns[kernel] = sent_to & BIT_ULL(kernel) ? min(sent_ns[kernel], record->ns) : record->ns;
	sent_to |= BIT_ULL(kernel);
}

/* The packet from its Ethernet header on, which lies `before` bytes before its data. */
static void send(const struct link *link, const struct sk_buff *skb, u32 before, u64 ns)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct record record = {
		.kind = PACKET,
		.link = link->number,
		.ns = ns,
		.image = {
			.headroom = skb_headroom(skb) - before,
			.linear = skb_headlen(skb) + before,
			.end = skb_end_offset(skb),
			.beside = skb->truesize - SKB_TRUESIZE(skb_end_offset(skb)),
			.hash = skb->hash,
			.l4_hash = skb->l4_hash,
			.sw_hash = skb->sw_hash,
			.ip_summed = skb->ip_summed,
			.csum_start = skb->csum_start,
			.csum_offset = skb->csum_offset,
			.gso_size = info->gso_size,
			.gso_segs = info->gso_segs,
			.gso_type = info->gso_type,
			.frags = info->nr_frags,
		},
	};
	u32 frag[MAX_SKB_FRAGS], bytes = record.image.linear;
	struct ring *ring;
	unsigned long flags;
	u64 at;
	u32 i;

	if (!together)
		return;
	if (WARN_ON_ONCE(skb_has_frag_list(skb) || skb_vlan_tag_present(skb)))
		return;
	for (i = 0; i < info->nr_frags; i++) {
		frag[i] = skb_frag_size(&info->frags[i]);
		if (are_zeros(skb_frag_address(&info->frags[i]), frag[i]))
			frag[i] |= ZEROS;
		else
			bytes += frag[i];
	}
	record.bytes = ALIGN(sizeof(record) + i * sizeof(*frag) + bytes, LINE);
	local_irq_save(flags);
	if (ns < later(time_travel_time, shared->distance[self][link->kernel]))
		panic("testctl_links: link %u: a packet at %llu for %llu, before its delay is over\n", link->number,
		      time_travel_time, ns);
	ring = begin_record(link->kernel, &record);
	if (ring) {
		at = ring->written + sizeof(record);
		copy_in(ring, at, frag, info->nr_frags * sizeof(*frag));
		at += info->nr_frags * sizeof(*frag);
		copy_in(ring, at, skb->data - before, record.image.linear);
		at += record.image.linear;
		for (i = 0; i < info->nr_frags; i++) {
			if (frag[i] & ZEROS)
				continue;
			copy_in(ring, at, skb_frag_address(&info->frags[i]), frag[i]);
			at += frag[i];
		}
		end_record(link->kernel, ring, &record);
	}
	local_irq_restore(flags);
}

static struct link *by_other(const struct net_device *dev)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->other == dev)
			return link;
	return NULL;
}

bool testctl_links_is_far(const struct net_device *dev)
{
	return !list_empty(&links) && by_other(dev);
}

void testctl_links_receive(struct sk_buff *skb)
{
	struct link *link = by_other(skb->dev);

	if (!link->ahead)
		send(link, skb, skb->data - skb_mac_header(skb), time_travel_time);
	else if (link->announced)
		link->announced--;
	else if (together)
		WARN_ONCE(1, "testctl_links: link %u: a packet was not announced, and is lost\n", link->number);
	consume_skb(skb);
}

void testctl_links_announce(const struct net_device *dev, const struct sk_buff *skb, u64 ns)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->own == dev && link->ahead) {
			link->announced++;
			send(link, skb, 0, ns + boot_ns);
			return;
		}
}

int __real___dev_queue_xmit(struct sk_buff *skb, struct net_device *to);
int __wrap___dev_queue_xmit(struct sk_buff *skb, struct net_device *to);

/* A switch's program has given the packet its time. */
int __wrap___dev_queue_xmit(struct sk_buff *skb, struct net_device *to)
{
	if (!list_empty(&links) && skb->tstamp)
		testctl_links_announce(skb->dev, skb, skb->tstamp);
	return __real___dev_queue_xmit(skb, to);
}

static bool all_are(u64 stage)
{
	return hweight64(done_kernels[stage]) == shared->kernels;
}

/* With interrupts off.  What is new goes on to the neighbours. */
static void tell_done(u64 stage, u64 kernels)
{
	struct record record = { .bytes = LINE, .kind = DONE, .done.stage = stage };
	struct ring *ring;
	u32 kernel;

	if ((done_kernels[stage] | kernels) == done_kernels[stage])
		return;
	done_kernels[stage] |= kernels;
	record.done.kernels = done_kernels[stage];
	for (kernel = 0; kernel < shared->kernels; kernel++) {
		if (kernel == self || !shared->ring[self][kernel])
			continue;
		record.ns = later(time_travel_time, shared->distance[self][kernel]);
		ring = begin_record(kernel, &record);
		if (ring)
			end_record(kernel, ring, &record);
	}
	if (all_are(stage))
		wake_up(&all_done);
}

static void receive_arrived(struct tasklet_struct *unused)
{
	struct arrival *one, *after;
	struct net_device *dev;
	unsigned long flags;
	struct link *link;
	LIST_HEAD(here);

	local_irq_save(flags);
	list_splice_init(&arrived, &here);
	local_irq_restore(flags);
	list_for_each_entry_safe(one, after, &here, in_list) {
		dev = NULL;
		if (!one->skb) {
			local_irq_save(flags);
			tell_done(one->done.stage, one->done.kernels);
			local_irq_restore(flags);
		} else {
			list_for_each_entry(link, &links, in_all)
				if (link->number == one->link)
					dev = link->other;
			if (dev) {
				one->skb->dev = dev;
				netdev_start_xmit(one->skb, dev, netdev_get_tx_queue(dev, 0), false);
			} else {
				kfree_skb(one->skb);
			}
		}
		kfree(one);
	}
}

static int set_memory(const char *value, const struct kernel_param *param)
{
	static char path[PATH_MAX];	/* writers of parameters wait for each other */
	struct shared *at;
	u32 index;
	int fd;

	if (shared)
		return -EBUSY;
	if (sscanf(value, "%u %4095s", &index, path) != 2)
		return -EINVAL;
	fd = os_open_file(path, of_cloexec(of_rdwr(OPENFLAGS())), 0);
	if (fd < 0)
		return fd;
	at = mmap(NULL, sizeof(*at), PROT_READ_WRITE, MAP_SHARED_FILE, fd, 0);
	if ((long)at != -1 && at->format == FORMAT && index < at->kernels && at->kernels <= MOST_KERNELS) {
		self = index;
		at = mmap(NULL, at->bytes, PROT_READ_WRITE, MAP_SHARED_FILE, fd, 0);
		if ((long)at != -1)
			shared = at;
	}
	os_close_file(fd);
	return shared ? 0 : -EINVAL;
}

static const struct kernel_param_ops memory_ops = { .set = set_memory };
module_param_cb(memory, &memory_ops, NULL, 0200);

static struct link *link_of(u16 number)
{
	struct link *link;

	list_for_each_entry(link, &links, in_all)
		if (link->number == number)
			return link;
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (link) {
		link->number = number;
		list_add_tail(&link->in_all, &links);
	}
	return link;
}

static int set_link(const char *value, const struct kernel_param *param)
{
	char own[IFNAMSIZ + 1], other[IFNAMSIZ + 1];
	struct net *net = current->nsproxy->net_ns;
	u32 number, kernel, ahead;
	struct net_device *dev;
	struct link *link;
	bool is_own;
	int error = 0;

	if (sscanf(value, "%u %u %u %16s %16s", &number, &kernel, &ahead, own, other) != 5 || number > U16_MAX)
		return -EINVAL;
	if (!shared || kernel >= shared->kernels || kernel == self || !shared->ring[self][kernel])
		return -ENXIO;
	is_own = strcmp(own, "-");
	rtnl_lock();
	dev = __dev_get_by_name(net, is_own ? own : other);
	link = dev ? link_of(number) : NULL;
	if (link) {
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

static int join(const char *value, const struct kernel_param *param)
{
	unsigned long flags;
	u32 joined, kernel;

	if (!shared || together)
		return -EINVAL;
	zeros = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, get_order(MOST_ZEROS));
	if (!zeros)
		return -ENOMEM;
	local_irq_save(flags);
	boot_ns = time_travel_time - ktime_get_ns();
	store(&member(self)->next_ns, time_travel_time);
	joined = __atomic_add_fetch(&shared->joined, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_FUTEX, &shared->joined, FUTEX_WAKE, MOST_KERNELS, NULL, NULL, 0);
	for (; joined < shared->kernels; joined = load(&shared->joined))
		syscall(SYS_FUTEX, &shared->joined, FUTEX_WAIT, joined, NULL, NULL, 0);
	publish_every_ns = NEVER;
	for (kernel = 0; kernel < shared->kernels; kernel++)
		if (kernel != self)
			publish_every_ns = min(publish_every_ns, shared->distance[self][kernel] / 8);
	horizon = 0;
	together = true;
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops join_ops = { .set = join };
module_param_cb(join, &join_ops, NULL, 0200);

static int done(const char *value, const struct kernel_param *param)
{
	unsigned long flags;
	u64 stage;

	if (!together || kstrtou64(value, 10, &stage) || stage >= STAGES)
		return -EINVAL;
	local_irq_save(flags);
	tell_done(stage, BIT_ULL(self));
	local_irq_restore(flags);
	wait_event(all_done, all_are(stage));
	return 0;
}

static const struct kernel_param_ops done_ops = { .set = done };
module_param_cb(done, &done_ops, NULL, 0200);

static int leave(const char *value, const struct kernel_param *param)
{
	struct member *me;
	unsigned long flags;
	u64 kernels;

	if (!together)
		return -EINVAL;
	me = member(self);
	local_irq_save(flags);
	together = false;
	look_after_receivers();
	lock_shared();
	store(&me->left, 1);
	store(&me->next_ns, NEVER);
	kernels = release_all(false);
	unlock_shared();
	wake(kernels);
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops leave_ops = { .set = leave };
module_param_cb(leave, &leave_ops, NULL, 0200);
