/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that are the same in each run: the first packet that asks gets the first, whatever else happens. */
#ifndef P4C_EBPF_RANDOM_H
#define P4C_EBPF_RANDOM_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} drawn SEC(".maps");

/* One of low to high, all as likely as each other: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), begun at 0. */
static __noinline u64 random_between(u32 low, u32 high)
{
	u32 zero = 0;
	u64 *drawn_so_far = bpf_map_lookup_elem(&drawn, &zero), x;

	if (!drawn_so_far || low > high)
		return low;
	x = __sync_fetch_and_add(drawn_so_far, 0x9e3779b97f4a7c15ULL);
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return low + ((x >> 32) * ((u64)high - low + 1) >> 32);
}

#endif
