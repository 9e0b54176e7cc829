/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the links between kernels share: the memory that the kernels have in common, the time of this one
 * (lab_links_time.c), and its packets in rings (lab_links_rings.c).  Functions are called with interrupts off.
 */
#ifndef TESTCTL_LINKS_H
#define TESTCTL_LINKS_H

#include <linux/limits.h>
#include <linux/mm_types.h>
#include <linux/skbuff.h>
#include <linux/types.h>

#include "lab_links.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_links."

#define MOST_KERNELS 64
#define NEVER S64_MAX
#define LINE 64			/* bytes of a cache line */
#define LINKS_ZEROS 65536
#define SYS_SCHED_YIELD 24

/* One cache line of the shared memory for each kernel. */
struct links_member {
	u64 next_ns;		/* nothing is done or sent before */
	u64 need_ns;		/* the horizon that it waits for */
	u64 wake_at_ns;		/* once next_ns comes here, others may go on */
	u32 blocked;
	u32 word;		/* of the futex: how often it was released */
	u32 left;
	u32 asleep;		/* in the machine's kernel, not spinning */
	u32 pad[6];
};

struct links_memory {
	u32 format;
	u32 kernels;
	u32 ring_bytes;		/* a power of two */
	u32 spins;		/* before a kernel that waits lets the processor go */
	u32 lock;
	u32 joined;
	u64 ring_offset;	/* of ring 0 in the file; each has a page and ring_bytes */
	u32 turns;		/* on one processor: a kernel runs as far as it may, then the others */
	u8 pad[28];
	struct links_member member[MOST_KERNELS];
	u64 distance[MOST_KERNELS][MOST_KERNELS];	/* [from][to] */
	u32 ring[MOST_KERNELS][MOST_KERNELS];		/* [from][to]: its number from 1 on; 0: no link */
};

extern struct links_memory *links_memory;	/* NULL: this kernel is alone */
extern u32 links_self;
extern bool links_together;
extern u64 links_boot_ns;			/* time_travel_time of CLOCK_MONOTONIC's 0 */
extern struct page *links_zeros;		/* LINKS_ZEROS bytes, which nobody writes to */

extern unsigned long long time_travel_time;
extern struct list_head time_travel_events;
extern long syscall(long number, ...);

#define load(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define store(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)

static inline u64 later(u64 ns, u64 by)
{
	return ns >= NEVER || by >= NEVER - ns ? NEVER : ns + by;
}

/* Kernels have come to a stage, by their bits.  What is new goes on to the neighbours. */
void links_done(u64 stage, u64 kernels);

/* A kernel in whose ring there is no space is to read it, whatever it waits for. */
void links_let_read(u32 kernel);

/* Something was sent to a kernel, which arrives there then. */
void links_sent(u32 kernel, u64 ns);

/* See what the others have sent, which stays in its ring until it arrives; whether there was something new. */
bool links_look(void);

/* When what has been seen arrives, the first of it; NEVER: nothing has. */
u64 links_next_ns(void);

/* What arrives then, the next of all, is an event before the others of its time. */
void links_arrive(u64 ns);

/* Send a packet from its Ethernet header on, which lies `before` bytes before its data. */
void links_send(u32 kernel, u16 link, const struct sk_buff *skb, u32 before, u64 ns);

/* Send which kernels have come to a stage. */
void links_send_done(u32 kernel, u64 stage, u64 kernels, u64 ns);

/* A packet has arrived; it is freed. */
void links_deliver(u16 link, struct sk_buff *skb);

#endif
