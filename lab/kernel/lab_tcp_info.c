// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of struct tcp_info of a network namespace's TCP sockets, in a file of the machine.
 *
 * /proc/testctl_tcp_info (lab_host_file.h), words "START_NS END_NS INTERVAL_NS FAMILY PORTS": the
 * instants are START_NS, START_NS + INTERVAL_NS, … of CLOCK_REALTIME up to END_NS (0: no end);
 * those that have passed are left out.  START_NS 0: the multiples of the interval.  FAMILY is inet
 * or inet6; PORTS is - for all, or such as 5001-5004,6000, of which a socket has one at either
 * end.  Counters: samples, records, and dropped, not written because the file could not be or for
 * want of memory.
 *
 * The file, the sockets and the order within a sample are those of `tgen sample`
 * (agents/tgen/sample.c), which asks inet_diag.
 *
 * A sample wakes no process, reads the clock where that does not move it, and comes by an event of
 * UML's virtual time, not by a timer of the kernel: at a timer's interrupt any other timer goes
 * off whose slack allows it.  TCP's compressed ACKs have 0.1 ms of slack, and would be sent sooner.
 */
#include <linux/bottom_half.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/kstrtox.h>
#include <linux/lockdep.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/sock_diag.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/timekeeping.h>
#include <net/inet_hashtables.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "lab_host_file.h"

#define INFO_BYTES 320
#define MOST_RANGES 64
#define LEAST_INTERVAL_NS 1000
#define SOCKETS_FIRST 64
#define STATES (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_CLOSE_WAIT | TCPF_CLOSING | TCPF_LAST_ACK)

struct file_head {
	char magic[4];	/* "TGI1" */
	u32 info_bytes;
};

struct record {
	u64 time_ns;
	u16 local_port;
	u16 remote_port;
	u32 state;
	u32 cookie;
	u32 length;	/* of what the kernel gave */
	u8 info[INFO_BYTES];
};

struct port_range {
	u16 low;
	u16 high;
};

struct sampler {
	struct lab_recorder recorder;
	struct time_travel_event due;
	struct tasklet_struct sampling;	/* a softirq: sockets are at rest */
	u64 next_ns;
	u64 end_ns;
	u64 interval_ns;
	int family;
	u32 ranges;
	struct port_range range[MOST_RANGES];
	struct sock **sockets;	/* (owned) those of one sample, `space` of them */
	u32 space;
	u32 count;
	u64 samples;
	u64 records;
	u64 dropped;
};

static bool is_wanted(const struct sampler *s, const struct sock *sk)
{
	u16 local = sk->sk_num, remote = ntohs(sk->sk_dport);
	u32 i;

	if (!net_eq(sock_net(sk), s->recorder.net) || sk->sk_family != s->family || !(STATES & (1 << sk->sk_state)))
		return false;
	for (i = 0; i < s->ranges; i++)
		if ((local >= s->range[i].low && local <= s->range[i].high) ||
		    (remote >= s->range[i].low && remote <= s->range[i].high))
			return true;
	return !s->ranges;
}

static void keep(struct sampler *s, struct sock *sk)
{
	struct sock **more;
	u32 space = s->space ? 2 * s->space : SOCKETS_FIRST;

	if (s->count == s->space) {
		more = krealloc(s->sockets, array_size(space, sizeof(*more)), GFP_ATOMIC);
		if (!more) {
			s->dropped++;
			return;
		}
		s->sockets = more;
		s->space = space;
	}
	s->sockets[s->count++] = sk;
}

static void find(struct sampler *s)
{
	const struct inet_hashinfo *table = s->recorder.net->ipv4.tcp_death_row.hashinfo;
	const struct hlist_nulls_node *node;
	struct sock *sk;
	u32 bucket;

	s->count = 0;
	for (bucket = 0; bucket <= table->ehash_mask; bucket++)
		sk_nulls_for_each(sk, node, &table->ehash[bucket].chain)
			if (is_wanted(s, sk))
				keep(s, sk);
}

static int by_ports(const void *left, const void *right)
{
	const struct sock *a = *(struct sock *const *)left, *b = *(struct sock *const *)right;

	if (a->sk_num != b->sk_num)
		return a->sk_num < b->sk_num ? -1 : 1;
	return (int)ntohs(a->sk_dport) - (int)ntohs(b->sk_dport);
}

/*
 * Only reads: a process that owns the socket is interrupted, and must not be waited for.  So the
 * socket's lock, taken here, never sleeps, and what checks that it may is off meanwhile.
 */
static void look(struct sock *sk, struct tcp_info *info)
{
	int owned = sk->sk_lock.owned;

	lockdep_off();
	if (IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP))
		oops_in_progress++;
	sk->sk_lock.owned = 0;
	tcp_get_info(sk, info);
	sk->sk_lock.owned = owned;
	if (IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP))
		oops_in_progress--;
	lockdep_on();
}

static void put(struct sampler *s, struct sock *sk, u64 time_ns)
{
	struct record *record = lab_file_space(&s->recorder.file, sizeof(*record));

	if (!record) {
		s->dropped++;
		return;
	}
	record->time_ns = time_ns;
	record->local_port = sk->sk_num;
	record->remote_port = ntohs(sk->sk_dport);
	record->state = sk->sk_state;
	record->cookie = sock_gen_cookie(sk);
	record->length = sizeof(struct tcp_info);
	look(sk, (struct tcp_info *)record->info);
	memset(record->info + sizeof(struct tcp_info), 0, INFO_BYTES - sizeof(struct tcp_info));
	lab_file_put(&s->recorder.file, sizeof(*record));
	s->records++;
}

/* The next instant that has not passed by more than an interval. */
static u64 not_passed(const struct sampler *s, u64 next_ns, u64 now_ns)
{
	u64 late_ns = now_ns > next_ns ? now_ns - next_ns : 0;

	return late_ns > s->interval_ns ? next_ns + div64_u64(late_ns, s->interval_ns) * s->interval_ns : next_ns;
}

static void wait_for_next(struct sampler *s, u64 now_ns)
{
	s->next_ns = not_passed(s, s->next_ns, now_ns);
	if (!s->end_ns || s->next_ns <= s->end_ns)
		time_travel_add_event_rel(&s->due, s->next_ns > now_ns ? s->next_ns - now_ns : 0);
}

static void is_due(struct time_travel_event *due)
{
	tasklet_schedule(&container_of(due, struct sampler, due)->sampling);
}

static void sample(struct tasklet_struct *sampling)
{
	struct sampler *s = container_of(sampling, struct sampler, sampling);
	u64 now_ns = ktime_get_real_ns();
	u32 i;

	find(s);
	sort(s->sockets, s->count, sizeof(*s->sockets), by_ports, NULL);
	for (i = 0; i < s->count; i++)
		put(s, s->sockets[i], now_ns);
	s->samples++;
	s->next_ns += s->interval_ns;
	wait_for_next(s, now_ns);
}

static int parse_ports(struct sampler *s, char *text)
{
	char *item, *high;

	s->ranges = 0;
	if (!strcmp(text, "-"))
		return 0;
	while ((item = strsep(&text, ","))) {
		struct port_range *range = &s->range[s->ranges];

		if (s->ranges++ == MOST_RANGES)
			return -E2BIG;
		high = strchr(item, '-');
		if (high)
			*high++ = 0;
		if (kstrtou16(item, 10, &range->low) || kstrtou16(high ? high : item, 10, &range->high) ||
		    !range->low || range->high < range->low)
			return -EINVAL;
	}
	return 0;
}

static int parse(struct sampler *s, char *words)
{
	char *start = strsep(&words, " "), *end = strsep(&words, " "), *interval = strsep(&words, " ");
	char *family = strsep(&words, " "), *ports = strsep(&words, " ");

	if (!ports || words || kstrtou64(start, 10, &s->next_ns) || kstrtou64(end, 10, &s->end_ns) ||
	    kstrtou64(interval, 10, &s->interval_ns))
		return -EINVAL;
	if (s->interval_ns < LEAST_INTERVAL_NS)
		return -ERANGE;
	s->family = strcmp(family, "inet6") ? AF_INET : AF_INET6;
	if (s->family == AF_INET && strcmp(family, "inet"))
		return -EINVAL;
	return parse_ports(s, ports);
}

static int sampler_begin(struct lab_recorder *recorder, char *words)
{
	struct sampler *s = container_of(recorder, struct sampler, recorder);
	struct file_head head = { .magic = "TGI1", .info_bytes = INFO_BYTES };
	int error = parse(s, words);
	u64 now_ns;

	if (error)
		return error;
	s->samples = 0;
	s->records = 0;
	s->dropped = 0;
	tasklet_setup(&s->sampling, sample);
	time_travel_set_event_fn(&s->due, is_due);
	local_bh_disable();
	memcpy(lab_file_space(&recorder->file, sizeof(head)), &head, sizeof(head));
	lab_file_put(&recorder->file, sizeof(head));
	now_ns = ktime_get_real_ns();
	if (!s->next_ns)
		s->next_ns = (div64_u64(now_ns, s->interval_ns) + 1) * s->interval_ns;
	wait_for_next(s, now_ns);
	local_bh_enable();
	return 0;
}

static void sampler_end(struct lab_recorder *recorder)
{
	struct sampler *s = container_of(recorder, struct sampler, recorder);

	time_travel_del_event(&s->due);
	tasklet_kill(&s->sampling);
	time_travel_del_event(&s->due); /* a sample that was under way asked for the next one */
	kfree(s->sockets);
	s->sockets = NULL;
	s->space = 0;
}

static int sampler_tell(const struct lab_recorder *recorder, char *text, u32 size)
{
	const struct sampler *s = container_of(recorder, struct sampler, recorder);

	return scnprintf(text, size, "samples=%llu\nrecords=%llu\ndropped=%llu\n", s->samples, s->records, s->dropped);
}

static const struct lab_recorder_type tcp_info_type = {
	.name = "testctl_tcp_info",
	.bytes = sizeof(struct sampler),
	.begin = sampler_begin,
	.end = sampler_end,
	.tell = sampler_tell,
};

static int __init tcp_info_init(void)
{
	BUILD_BUG_ON(sizeof(struct record) != 24 + INFO_BYTES || sizeof(struct tcp_info) > INFO_BYTES);
	return lab_recorder_register(&tcp_info_type);
}
device_initcall(tcp_info_init);
