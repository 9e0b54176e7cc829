/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two-rate three-colour marker of RFC 2698, colour-blind: red if the peak bucket has not enough, else
 * yellow if the committed one has not, else green.  As in BMv2 a yellow packet takes from the peak
 * bucket alone, a red one from neither, and a cell that nobody has set gives green.
 *
 * Buckets are kept in billionths of a byte (or packet), so that a nanosecond at a rate adds exactly
 * that many; BMv2 counts whole microseconds.  64 bits hold it: a burst is below 2^32, and
 * elapsed * rate is only computed where it is at most what the bucket lacks.
 *
 * The order of the members is layout.METER.
 */
#ifndef P4C_EBPF_METER_H
#define P4C_EBPF_METER_H

#define METER_SCALE 1000000000ULL

struct meter {
	struct bpf_spin_lock lock;	/* over all below */
	u32 set;
	u64 committed_rate, committed_burst;	/* a second; bytes or packets */
	u64 peak_rate, peak_burst;
	u64 since_ns, committed, peak;	/* the buckets, and the time they are of */
};

static __always_inline u64 meter_filled(u64 tokens, u64 burst, u64 rate, u64 elapsed)
{
	u64 full = burst * METER_SCALE;
	u64 room = full > tokens ? full - tokens : 0;

	if (!rate)
		return tokens;
	return elapsed <= room / rate ? tokens + elapsed * rate : full;
}

/* 0 green, 1 yellow, 2 red */
static __always_inline u64 meter_colour(struct meter *m, u64 now_ns, u64 size)
{
	u64 need = size * METER_SCALE, elapsed = 0, colour = 0;

	bpf_spin_lock(&m->lock);
	if (m->set) {
		if (now_ns > m->since_ns) {
			elapsed = now_ns - m->since_ns;
			m->since_ns = now_ns;
		}
		m->committed = meter_filled(m->committed, m->committed_burst, m->committed_rate, elapsed);
		m->peak = meter_filled(m->peak, m->peak_burst, m->peak_rate, elapsed);
		if (m->peak < need) {
			colour = 2;
		} else {
			m->peak -= need;
			if (m->committed < need)
				colour = 1;
			else
				m->committed -= need;
		}
	}
	bpf_spin_unlock(&m->lock);
	return colour;
}

#endif
