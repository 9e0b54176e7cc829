/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A port whose link changes: the rate, the delay and whether the link is up follow a schedule, or packets leave at
 * the opportunities of a trace.
 *
 * A schedule is a list of steps, each valid from its time on.  Let V(t) be the integral of the rate up to t, in
 * nanobits; the first nanobit that a queue has not sent yet, and `tail`, the one behind its last, are points of V:
 *
 *	tail    = max(tail, V(now))
 *	backlog = tail - V(now)
 *	tail    = tail + size * 8e9
 *	done    = the first ns at which V reaches the tail
 *	at      = done + the delay that is valid at `done`
 *
 * V needs 128 bits; the steps have its value at their beginning.  A backlog has 64, as in port_model.h.  A rate of 0
 * holds the packets.  A step without a rate (LINK_UNLIMITED) lets V jump by 2^64 at its beginning: whatever waits is
 * sent then.  While the link is down, and at the moment it goes down, packets that wait or arrive are lost; those
 * that are on the link already arrive.  A packet that is larger than what the link takes when it comes is lost, and
 * its sender gets a message (icmp.h) if the step says so.
 *
 * A trace has opportunities, each of LINK_OPPORTUNITY bytes at a whole millisecond, and is repeated after its last one.
 * A packet uses as many as it needs, and shares one with the packet behind it if that arrived before the opportunity;
 * an opportunity that comes while nothing waits is lost.  A packet counts from its IP header on, and LINK_TUN bytes
 * more.  Source: Mahimahi (Netravali et al., USENIX ATC 2015), src/frontend/link_queue.cc: its packets come from a TUN
 * device, whose 4 bytes count.
 *
 * Times of steps and opportunities begin LINK_LEAD_NS before `link_origin`, the start of the traffic, so that the
 * first steps are valid before it, too.  While a lock is held, no map can be looked at: what depends only on the time
 * is looked up before, and what depends on the tail after it.  The verifier checks a function that is not static once,
 * wherever it is called from.
 */
#ifndef P4C_EBPF_LINK_MODEL_H
#define P4C_EBPF_LINK_MODEL_H

#define LINK_STEPS 1024				/* a power of two */
#define LINK_STEP_BITS 11
#define LINK_UNLIMITED (~0ULL)
#define LINK_NEVER (~0ULL)
#define LINK_LEAD_NS 1000000000000ULL
#define LINK_LONGEST_NS 3600000000000ULL	/* what waits for longer never leaves */
#define LINK_CHUNK 1024				/* opportunities in an element of a trace */
#define LINK_TRACE_BITS 22			/* at most 2^21 opportunities */
#define LINK_OPPORTUNITY 1504
#define LINK_MAC 14
#define LINK_TUN 4
#define LINK_MS 1000000ULL
#define LINK_PLACES 1024			/* between the quantiles of a distribution */
#define LINK_SETTLED_NS 1000000000ULL		/* how long before the origin a trace begins to hold packets */

enum link_steps { LINK_RATE, LINK_DELAY, LINK_DOWN, LINK_LARGEST, LINK_KINDS };

enum link_jitter { LINK_STEADY, LINK_REORDERS, LINK_IN_ORDER };

struct level {				/* a point of V */
	__u64 high, low;
};

struct step {
	__u64 at_ns;
	__u64 value;			/* bit/s; ns; when it is up again; bytes from the IP header on, 0: any */
	struct level level;		/* V at its beginning, of LINK_RATE; of LINK_LARGEST, low: whether messages are sent */
};

struct link {
	__u64 count[LINK_KINDS];	/* steps in use; the first of all but LINK_DOWN is at 0 */
	__u64 opportunities;		/* of the trace; 0: there is none */
	__u64 period_ms;		/* of the trace */
	__u64 jitter;			/* enum link_jitter */
	__u64 seed;
	__u64 next;			/* the first opportunity, counted over all repetitions, that has bytes left */
	__u64 used;			/* bytes of it */
	struct level tail;
	__u64 drawn;			/* delays of the jitter */
	__u64 last_ns;			/* the latest arrival so far */
	__u64 quantile[LINK_PLACES + 1];	/* of the jitter, ns */
	struct step steps[LINK_KINDS][LINK_STEPS];
};

struct opportunities {
	__u32 ms[LINK_CHUNK];
};

#ifndef BPF_F_INNER_MAP
#define BPF_F_INNER_MAP 0x1000
#endif

struct link_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct link));
};

struct trace_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP);	/* each has as many elements as it needs */
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct opportunities));
};

/* by P4 port */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__array(values, struct link_map);
} links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PORTS);
	__type(key, __u32);
	__array(values, struct trace_map);
} traces SEC(".maps");

/* CLOCK_MONOTONIC, ns */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} link_origin SEC(".maps");

static __always_inline unsigned __int128 level(const struct level *l)
{
	return (unsigned __int128)l->high << 64 | l->low;
}

static __always_inline unsigned __int128 product(__u64 a, __u64 b)
{
	__u64 a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
	__u64 low = a_low * b_low, one = a_high * b_low + (low >> 32), other = a_low * b_high + (one & 0xffffffff);

	return (unsigned __int128)(a_high * b_high + (one >> 32) + (other >> 32)) << 64 |
	       (other << 32 | (low & 0xffffffff));
}

/* An index into the steps: the verifier sees that it is one. */
static __always_inline __u64 step_index(__u64 i)
{
	opaque(i);
	return i & (LINK_STEPS - 1);
}

static __always_inline struct link *link_of(__u32 number)
{
	void *inner = bpf_map_lookup_elem(&links, &number);
	__u32 zero = 0;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

/* How many of a port's steps begin at or before `ns`. */
__noinline __u64 link_steps_by(__u32 number, __u32 kind, __u64 ns)
{
	struct link *l = link_of(number);
	__u64 low = 0, high;		/* steps below `low` begin in time, those from `high` on do not */

	if (!l || kind >= LINK_KINDS)
		return 0;
	high = l->count[kind];
	for (int k = 0; k < LINK_STEP_BITS; k++) {
		__u64 middle = (low + high) / 2;

		if (low >= high)
			break;
		if (l->steps[kind][step_index(middle)].at_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether a < b, without a branch: 1 or 0. */
static __always_inline __u64 is_less(__u64 a, __u64 b)
{
	return ((~a & b) | ((~a | b) & (a - b))) >> 63;
}

/* How many steps of a port's rate begin below a point of V.  Without branches: of 2 to the power of LINK_STEP_BITS ways
 * through them the verifier would look at a third of those that it allows. */
__noinline __u64 link_steps_below(__u32 number, __u64 point_high, __u64 point_low)
{
	struct link *l = link_of(number);
	__u64 low = 0, high;

	if (!l)
		return 0;
	high = l->count[LINK_RATE];
	for (int k = 0; k < LINK_STEP_BITS; k++) {
		__u64 middle = (low + high) / 2, below;
		const struct level *at = &l->steps[LINK_RATE][step_index(middle)].level;

		below = is_less(at->high, point_high) |
			(~is_less(point_high, at->high) & is_less(at->low, point_low));
		below = -(below & is_less(low, high));
		opaque(below);
		high = (high & below) | (middle & ~below);
		low = ((middle + 1) & below) | (low & ~below);
	}
	return low;
}

static __always_inline __u64 trace_ms(void *trace, __u64 i)
{
	__u32 chunk = i / LINK_CHUNK;
	const struct opportunities *found = bpf_map_lookup_elem(trace, &chunk);

	return found ? found->ms[i % LINK_CHUNK] : 0;
}

/* The first opportunity of a port after `ns` since the origin, counted over all repetitions. */
__noinline __u64 trace_after(__u32 number, __u64 ns)
{
	void *trace = bpf_map_lookup_elem(&traces, &number);
	struct link *l = link_of(number);
	__u64 ms = ns / LINK_MS, low = 0, high;

	if (!trace || !l || !l->opportunities || !l->period_ms)
		return 0;
	high = l->opportunities - 1;
	for (int k = 0; k < LINK_TRACE_BITS; k++) {
		__u64 middle = (low + high) / 2;

		if (low >= high)
			break;
		if (trace_ms(trace, middle) > ms % l->period_ms)
			high = middle;
		else
			low = middle + 1;
	}
	return ms / l->period_ms * l->opportunities + low;
}

/* When V reaches `tail`, which lies behind `from`, its value at `now` in step i. */
static __always_inline __u64 link_done(__u32 number, const struct link *l, __u64 now, unsigned __int128 from, __u64 i,
				       unsigned __int128 tail)
{
	__u64 by = link_steps_below(number, tail >> 64, tail), rate;

	if (by && by - 1 > i) {
		i = by - 1;
		now = l->steps[LINK_RATE][step_index(i)].at_ns;
		from = level(&l->steps[LINK_RATE][step_index(i)].level);
	}
	rate = l->steps[LINK_RATE][step_index(i)].value;
	if (rate == LINK_UNLIMITED)
		return now;
	return rate ? now + ((__u64)(tail - from) + rate - 1) / rate : LINK_NEVER;
}

/* The n-th delay of the jitter (spec/jitter.py): SplitMix64, and the table of quantiles. */
static __always_inline __u64 link_jitter(const struct link *l, __u64 n)
{
	__u64 x = l->seed + (n + 1) * 0x9e3779b97f4a7c15ULL, low, high, place;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	place = x >> 54;
	opaque(place);
	place &= LINK_PLACES - 1;
	low = l->quantile[place];
	high = l->quantile[place + 1];
	return low + ((high - low) * (x >> 22 & 0xffffffff) >> 32);
}

/* A packet arrives at port `number`, whose link changes: as port_enqueue(). */
__noinline int link_enqueue(__u32 number, __u64 now_ns, __u32 packet_bytes, struct departure *d)
{
	struct port *p = bpf_map_lookup_elem(&ports, &number);
	struct link *l = link_of(number);
	__u32 zero = 0;
	const __u64 *origin = bpf_map_lookup_elem(&link_origin, &zero);
	void *trace = bpf_map_lookup_elem(&traces, &number);
	__u64 now, size, limit, largest, rate, i, by, done, backlog, first = 0;
	__u64 went_down = 0, down = 0, ends = LINK_NEVER;	/* the last way down so far, and the next one */
	__u64 large = 0;
	unsigned __int128 from, tail = 0;

	if (!d || !p || !l || !origin)
		return 0;
	now = now_ns + LINK_LEAD_NS > *origin ? now_ns + LINK_LEAD_NS - *origin : 0;
	d->at_ns = now_ns;
	d->depth_bytes = 0;
	d->dropped = 0;
	size = packet_bytes + p->framing_bytes;
	limit = p->buffer_bytes;
	if (!limit || limit > PORT_MOST_BYTES)
		limit = PORT_MOST_BYTES;
	by = link_steps_by(number, LINK_DOWN, now);
	if (by) {
		went_down = l->steps[LINK_DOWN][step_index(by - 1)].at_ns;
		down = now < l->steps[LINK_DOWN][step_index(by - 1)].value;
	}
	if (by < l->count[LINK_DOWN])
		ends = l->steps[LINK_DOWN][step_index(by)].at_ns;
	by = link_steps_by(number, LINK_LARGEST, now);
	largest = l->steps[LINK_LARGEST][step_index(by - 1)].value;
	if (largest && packet_bytes > largest + LINK_MAC)
		large = l->steps[LINK_LARGEST][step_index(by - 1)].level.low ? PORT_LARGE : PORT_DOWN;
	i = link_steps_by(number, LINK_RATE, now) - 1;
	rate = l->steps[LINK_RATE][step_index(i)].value;
	from = level(&l->steps[LINK_RATE][step_index(i)].level);
	if (rate == LINK_UNLIMITED)
		from += (unsigned __int128)1 << 64;
	else
		from += product(now - l->steps[LINK_RATE][step_index(i)].at_ns, rate);
	if (trace && l->opportunities && l->period_ms && now + LINK_SETTLED_NS >= LINK_LEAD_NS) {
		first = now >= LINK_LEAD_NS ? trace_after(number, now - LINK_LEAD_NS) : 0;
		size = packet_bytes + LINK_TUN > LINK_MAC ? packet_bytes + LINK_TUN - LINK_MAC : 1;
		size += p->framing_bytes;
	} else {
		trace = NULL;
	}

	bpf_spin_lock(&p->lock);
	if (p->since_ns < went_down) {		/* what waited then is lost */
		l->tail.high = 0;
		l->tail.low = 0;
		l->next = 0;
		l->used = 0;
	}
	if (p->since_ns < now)
		p->since_ns = now;
	if (trace) {
		if (l->next < first) {
			l->next = first;
			l->used = 0;
		}
		backlog = (l->next - first) * LINK_OPPORTUNITY + l->used;
		d->depth_bytes = backlog;
	} else {
		tail = level(&l->tail);
		if (tail < from)
			tail = from;
		backlog = tail - from;
		d->depth_bytes = (backlog + PORT_NANOBITS_PER_BYTE - 1) / PORT_NANOBITS_PER_BYTE;
	}
	if (down) {
		d->dropped = PORT_DOWN;
	} else if (large) {
		d->dropped = large;
		d->largest = largest;
	} else if (d->depth_bytes + size > limit) {
		d->dropped = PORT_FULL;
	} else if (trace) {
		first = l->next + (l->used + size - 1) / LINK_OPPORTUNITY;
		l->next += (l->used + size) / LINK_OPPORTUNITY;
		l->used = (l->used + size) % LINK_OPPORTUNITY;
	} else if (rate != LINK_UNLIMITED) {
		tail += size * PORT_NANOBITS_PER_BYTE;
		l->tail.high = tail >> 64;
		l->tail.low = tail;
	}
	bpf_spin_unlock(&p->lock);

	if (!d->dropped) {
		if (trace)
			done = LINK_LEAD_NS + (first / l->opportunities * l->period_ms +
					       trace_ms(trace, first % l->opportunities)) * LINK_MS;
		else
			done = rate == LINK_UNLIMITED ? now : link_done(number, l, now, from, i, tail);
#ifdef PORT_BEGINS
		/* what leaves at an opportunity begins to be sent there */
		d->begins_ns = done;
		if (!trace && rate != LINK_UNLIMITED)
			d->begins_ns = link_done(number, l, now, from, i, tail - size * PORT_NANOBITS_PER_BYTE);
		d->begins_ns = now_ns - now + (d->begins_ns < done ? d->begins_ns : done);
#endif
		by = link_steps_by(number, LINK_DELAY, done);
		if (done > ends || done - now > LINK_LONGEST_NS)
			d->dropped = PORT_DOWN;
		else
			d->at_ns += done - now + l->steps[LINK_DELAY][step_index(by - 1)].value;
	}
	if (!d->dropped && l->jitter) {
		bpf_spin_lock(&p->lock);
		d->at_ns += link_jitter(l, l->drawn);
		l->drawn += 1;
		if (l->jitter == LINK_IN_ORDER && d->at_ns < l->last_ns)
			d->at_ns = l->last_ns;
		l->last_ns = d->at_ns;
		bpf_spin_unlock(&p->lock);
	}
	__sync_fetch_and_add(d->dropped ? &p->dropped_packets : &p->sent_packets, 1);
	__sync_fetch_and_add(d->dropped ? &p->dropped_bytes : &p->sent_bytes, packet_bytes);
	return 0;
}

#endif
