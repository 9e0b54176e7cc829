// SPDX-License-Identifier: GPL-2.0
/*
 * Repeatable random numbers for the virtual-time lab.
 *
 * Congestion controls (BBR's probing phase, CDG's back-off), qdiscs (netem's
 * loss) and the stack (initial sequence numbers, ports, hash keys) draw random
 * numbers from the kernel.  In the lab they are drawn from one seeded stream,
 * so that a point of a plan gives the same packets every time.  The linker
 * sends every call from outside drivers/char/random.c here (--wrap), which
 * needs no change to the kernel's sources.
 *
 * The stream is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", OOPSLA 2014).  It is not secret, and need not be.
 *
 * Seed: testctl_random.seed=N on the command line, or written at run time to
 * /sys/module/testctl_random/parameters/seed, which restarts the stream.
 *
 * A qdisc of Linux's below a port of the lab draws from the port's (lab_random.h).
 *
 * Programs have a stream of their own (getrandom(2), /dev/urandom; its seed is
 * the parameter `user`): what they draw changes nothing in the kernel's.
 */
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "lab_links.h"
#include "lab_random.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "testctl_random."

static u64 state;
static u64 host; /* what the kernel's own generator asks for, in its own time */

static u64 user; /* what programs ask for */

extern unsigned long long time_travel_time;

u64 *testctl_random_of;

module_param_named(seed, state, ullong, 0600);
module_param_named(user, user, ullong, 0600);

u64 testctl_random_next(u64 *stream)
{
	unsigned long flags;
	u64 z;

	local_irq_save(flags);	/* UML has one processor: this is the lock */
	z = (*stream += 0x9e3779b97f4a7c15ULL);
	local_irq_restore(flags);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u64 *stream_of_kernel(void)
{
	return testctl_random_of ? testctl_random_of : &state;
}

/* Of hosts that are apart, a number depends on its time and not on what the others have drawn. */
static u64 next64(void)
{
	static u64 at, of_time;

	if (!testctl_apart || testctl_random_of)
		return testctl_random_next(stream_of_kernel());
	if (at != time_travel_time)
		at = of_time = time_travel_time;
	return testctl_random_next(&of_time);
}

static void fill(u8 *p, size_t len, u64 *stream)
{
	while (len) {
		u64 v = testctl_random_next(stream);
		size_t n = min(len, sizeof(v));

		memcpy(p, &v, n);
		p += n;
		len -= n;
	}
}

void __wrap_get_random_bytes(void *buf, size_t len);
u8 __wrap_get_random_u8(void);
u16 __wrap_get_random_u16(void);
u32 __wrap_get_random_u32(void);
u64 __wrap_get_random_u64(void);
u32 __wrap___get_random_u32_below(u32 ceil);
ssize_t __wrap_os_getrandom(void *buf, size_t len, unsigned int flags);

void __wrap_get_random_bytes(void *buf, size_t len)
{
	u64 same = 0;

	fill(buf, len, testctl_apart ? &same : stream_of_kernel());
}

u8 __wrap_get_random_u8(void)
{
	return next64() >> 56;
}

u16 __wrap_get_random_u16(void)
{
	return next64() >> 48;
}

u32 __wrap_get_random_u32(void)
{
	return next64() >> 32;
}

u64 __wrap_get_random_u64(void)
{
	return next64();
}

/* Uniform in [0, ceil) for ceil > 0, by multiplication (bias below 2^-32). */
u32 __wrap___get_random_u32_below(u32 ceil)
{
	return ((u64)__wrap_get_random_u32() * ceil) >> 32;
}

/*
 * What the kernel would ask of the host to seed its own generator.  That is seeded again
 * every few seconds, counted from the boot: it must not take from the stream above.
 */
ssize_t __wrap_os_getrandom(void *buf, size_t len, unsigned int flags)
{
	fill(buf, len, &host);
	return len;
}

ssize_t testctl_random_user(struct iov_iter *iter);

/* In the place of drivers/char/random.c's function: fill a program's buffer; the bytes written. */
ssize_t testctl_random_user(struct iov_iter *iter)
{
	size_t done = 0;
	u8 block[64];

	while (iov_iter_count(iter)) {
		size_t len = min(iov_iter_count(iter), sizeof(block));
		size_t copied;

		fill(block, len, &user);
		copied = copy_to_iter(block, len, iter);
		done += copied;
		if (copied != len)
			break;
	}
	return done || !iov_iter_count(iter) ? done : -EFAULT;
}
