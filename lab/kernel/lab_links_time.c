// SPDX-License-Identifier: GPL-2.0
/*
 * One virtual time for the kernels of a lab (lab_links.c).
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
 * A kernel that may not go on spins for a while and then waits for a futex.  The kernel on whose time that hangs has in
 * `wake_at_ns` when it matters, and then looks which others may go on.  To wake one costs as much as several packets, so
 * it does so when there is half a delay's time to do, or when it has to wait itself: then for all that may go on.
 *
 * Files, in /sys/module/testctl_links/parameters:
 *	memory	write "INDEX PATH": the file that the kernels share, as testctl/lab/shared_time.py makes it
 *	join	write: begin together; returns when all have
 *	done	write "STAGE", 0 or 1: this kernel has come that far; returns, in virtual time, when all have
 *	leave	write: no longer wait for the others, and drop what comes
 *	waited_ns	read: how long this kernel waited for others, by the machine's clock
 */
#include <linux/bits.h>
#include <linux/gfp.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/time-internal.h>
#include <linux/timekeeping.h>
#include <linux/wait.h>
#include <os.h>

#include "links.h"

#define FORMAT 0x324b4e4c	/* "LNK2" */
#define STAGES 2
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define SYS_FUTEX 202
#define PROT_READ_WRITE 3
#define MAP_SHARED_FILE 1

#define fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

extern void *mmap(void *at, unsigned long bytes, int prot, int flags, int fd, long offset);

struct links_memory *links_memory;
u32 links_self;
bool links_together;
u64 links_boot_ns;
struct page *links_zeros;

static struct links_member *me;
static u64 horizon;
static u64 quiet_ns;		/* before, there is nothing to receive, to wait for or to tell */
static u64 publish_every_ns;	/* of virtual time; 0 where something is sent on without a delay */
static u64 sent_to;		/* since it was looked whether they wait; and what arrives first of that */
static u64 sent_ns[MOST_KERNELS];
static u64 done_kernels[STAGES];
static DECLARE_WAIT_QUEUE_HEAD(all_done);

static u64 waited_ns;
module_param(waited_ns, ullong, 0400);

static struct links_member *member(u32 kernel)
{
	return &links_memory->member[kernel];
}

static void lock_memory(void)
{
	u32 tries = 0;

	while (__atomic_exchange_n(&links_memory->lock, 1, __ATOMIC_ACQUIRE))
		if (++tries % 64 == 0)
			syscall(SYS_SCHED_YIELD);
}

/* Until when kernel `to` knows what arrives, and whose time that hangs on. */
static u64 horizon_of(u32 to, u32 *by)
{
	u64 least = NEVER, ns;
	u32 from;

	*by = to;
	for (from = 0; from < links_memory->kernels; from++) {
		if (from == to)
			continue;
		ns = later(load(&member(from)->next_ns), links_memory->distance[from][to]);
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
	struct links_member *m = member(kernel);
	u64 need, from, until;
	u32 by;

	for (;;) {
		need = m->need_ns;
		until = horizon_of(kernel, &by);
		from = links_memory->distance[by][kernel];
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

/* Under the lock, which is given back: wake those that may go on now that this kernel has come as far as it has. */
static void release_all(bool enough)
{
	u64 kernels = 0;
	u32 kernel;

	store(&me->wake_at_ns, NEVER);
	fence();
	for (kernel = 0; kernel < links_memory->kernels; kernel++)
		if (kernel != links_self && member(kernel)->blocked && released(kernel, enough))
			kernels |= BIT_ULL(kernel);
	store(&links_memory->lock, 0);
	wake(kernels);
}

/*
 * Those that wait and do not know of what was sent to them.  Until this kernel has looked it says no later time, and
 * what it sent is no danger: an answer reaches a third kernel no earlier than what this one may still send.
 */
static void look_after_receivers(void)
{
	struct links_member *m;
	u64 kernels = 0;
	u32 kernel;

	if (!sent_to)
		return;
	fence();
	for (; sent_to; sent_to &= sent_to - 1) {
		kernel = __ffs64(sent_to);
		m = member(kernel);
		if (!load(&m->blocked))
			continue;
		lock_memory();
		if (m->blocked && sent_ns[kernel] < m->next_ns) {
			m->need_ns = sent_ns[kernel] + 1;
			store(&m->next_ns, sent_ns[kernel]);
			if (released(kernel, true))
				kernels |= BIT_ULL(kernel);
		}
		store(&links_memory->lock, 0);
	}
	wake(kernels);
}

/* A fence waits for all that was written before, a packet's copy too: so there is one for many packets. */
static void publish(u64 next_ns)
{
	if (links_memory->turns ||
	    (next_ns < later(me->next_ns, publish_every_ns) && next_ns < load(&me->wake_at_ns)))
		return;
	look_after_receivers();
	store(&me->next_ns, next_ns);
	fence();
	if (next_ns < load(&me->wake_at_ns))
		return;
	lock_memory();
	release_all(true);
}

/* Wait until the horizon may lie behind next_ns, before which this kernel does nothing. */
static void block(u64 next_ns)
{
	u32 word, spins;
	bool waits;

	lock_memory();
	word = me->word;
	me->need_ns = later(next_ns, 1);
	store(&me->blocked, 1);
	fence();
	if (links_look()) {
		/* One that did not know that this kernel waits: it may arrive before next_ns. */
		store(&me->blocked, 0);
		store(&links_memory->lock, 0);
		return;
	}
	store(&me->next_ns, next_ns);
	waits = !released(links_self, false);
	release_all(false);
	if (!waits)
		return;
	waited_ns -= os_nsecs();
	for (spins = links_memory->spins; spins && load(&me->word) == word; spins--)
		__builtin_ia32_pause();
	store(&me->asleep, 1);
	fence();
	while (load(&me->word) == word)
		syscall(SYS_FUTEX, &me->word, FUTEX_WAIT, word, NULL, NULL, 0);
	store(&me->asleep, 0);
	waited_ns += os_nsecs();
}

void testctl_links_advance(unsigned long long ns)
{
	unsigned long flags;
	bool looked;
	u64 next;
	u32 by;

	if (!links_together || (ns < quiet_ns && (links_memory->turns || ns < load(&me->wake_at_ns))))
		return;
	local_irq_save(flags);
	for (looked = false; next = min(ns, links_next_ns()), next >= horizon && horizon != NEVER; looked = !looked) {
		if (looked) {
			block(next);
			continue;
		}
		look_after_receivers();
		horizon = horizon_of(links_self, &by);
		fence();
		links_look();
	}
	if (links_next_ns() == next)
		links_arrive(next);
	publish(next);
	quiet_ns = links_memory->turns ? horizon : min(horizon, later(me->next_ns, publish_every_ns));
	quiet_ns = min(quiet_ns, links_next_ns());
	local_irq_restore(flags);
}

void links_let_read(u32 kernel)
{
	struct links_member *m = member(kernel);
	u64 kernels = 0;
	u32 by;

	lock_memory();
	if (m->blocked) {
		/* What it does not know of arrives after its horizon. */
		store(&m->next_ns, min(m->next_ns, horizon_of(kernel, &by)));
		m->blocked = 0;
		store(&m->word, m->word + 1);
		kernels = BIT_ULL(kernel);
	}
	store(&links_memory->lock, 0);
	wake(kernels);
	quiet_ns = 0;
}

void links_sent(u32 kernel, u64 ns)
{
	horizon = min(horizon, later(ns, links_memory->distance[kernel][links_self]));
	quiet_ns = min(quiet_ns, horizon);
	sent_ns[kernel] = sent_to & BIT_ULL(kernel) ? min(sent_ns[kernel], ns) : ns;
	sent_to |= BIT_ULL(kernel);
}

static bool all_are(u64 stage)
{
	return hweight64(done_kernels[stage]) == links_memory->kernels;
}

void links_done(u64 stage, u64 kernels)
{
	u32 kernel;

	if ((done_kernels[stage] | kernels) == done_kernels[stage])
		return;
	done_kernels[stage] |= kernels;
	for (kernel = 0; kernel < links_memory->kernels; kernel++)
		if (links_memory->ring[links_self][kernel])
			links_send_done(kernel, stage, done_kernels[stage],
					later(time_travel_time, links_memory->distance[links_self][kernel]));
	if (all_are(stage))
		wake_up(&all_done);
}

static int set_memory(const char *value, const struct kernel_param *param)
{
	static char path[PATH_MAX];	/* writers of parameters wait for each other */
	unsigned long long bytes;
	struct links_memory *at;
	u32 index;
	int fd;

	if (links_memory)
		return -EBUSY;
	if (sscanf(value, "%u %4095s", &index, path) != 2 || os_file_size(path, &bytes) || bytes < sizeof(*at))
		return -EINVAL;
	fd = os_open_file(path, of_cloexec(of_rdwr(OPENFLAGS())), 0);
	if (fd < 0)
		return fd;
	at = mmap(NULL, bytes, PROT_READ_WRITE, MAP_SHARED_FILE, fd, 0);
	os_close_file(fd);
	if ((long)at == -1 || at->format != FORMAT || index >= at->kernels || at->kernels > MOST_KERNELS)
		return -EINVAL;
	links_self = index;
	links_memory = at;
	me = member(index);
	return 0;
}

static const struct kernel_param_ops memory_ops = { .set = set_memory };
module_param_cb(memory, &memory_ops, NULL, 0200);

static int join(const char *value, const struct kernel_param *param)
{
	u32 joined, kernel;

	if (!links_memory || links_together)
		return -EINVAL;
	links_zeros = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, get_order(LINKS_ZEROS));
	if (!links_zeros)
		return -ENOMEM;
	local_irq_disable();
	links_boot_ns = time_travel_time - ktime_get_ns();
	store(&me->next_ns, time_travel_time);
	joined = __atomic_add_fetch(&links_memory->joined, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_FUTEX, &links_memory->joined, FUTEX_WAKE, MOST_KERNELS, NULL, NULL, 0);
	for (; joined < links_memory->kernels; joined = load(&links_memory->joined))
		syscall(SYS_FUTEX, &links_memory->joined, FUTEX_WAIT, joined, NULL, NULL, 0);
	publish_every_ns = NEVER;
	for (kernel = 0; kernel < links_memory->kernels; kernel++)
		if (kernel != links_self)
			publish_every_ns = min(publish_every_ns, links_memory->distance[links_self][kernel] / 8);
	horizon = 0;
	links_together = true;
	local_irq_enable();
	return 0;
}

static const struct kernel_param_ops join_ops = { .set = join };
module_param_cb(join, &join_ops, NULL, 0200);

static int done(const char *value, const struct kernel_param *param)
{
	u64 stage;

	if (!links_together || kstrtou64(value, 10, &stage) || stage >= STAGES)
		return -EINVAL;
	local_irq_disable();
	links_done(stage, BIT_ULL(links_self));
	local_irq_enable();
	wait_event(all_done, all_are(stage));
	return 0;
}

static const struct kernel_param_ops done_ops = { .set = done };
module_param_cb(done, &done_ops, NULL, 0200);

static int leave(const char *value, const struct kernel_param *param)
{
	if (!links_together)
		return -EINVAL;
	local_irq_disable();
	links_together = false;
	look_after_receivers();
	lock_memory();
	store(&me->left, 1);
	store(&me->next_ns, NEVER);
	release_all(false);
	local_irq_enable();
	return 0;
}

static const struct kernel_param_ops leave_ops = { .set = leave };
module_param_cb(leave, &leave_ops, NULL, 0200);
