/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What BPF C needs and the kernel's uapi headers do not have: how maps are declared (libbpf's BTF
 * convention), the helpers that are called, and reading and writing in the order of the wire.
 *
 * Helper numbers and signatures: include/uapi/linux/bpf.h.
 */
#ifndef P4C_EBPF_HELPERS_H
#define P4C_EBPF_HELPERS_H

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#ifndef NULL
#define NULL ((void *)0)
#endif

#define TC_ACT_UNSPEC -1
#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define ETH_IP 0x0800
#define ETH_IP6 0x86dd
#define ETH_VLAN 0x8100

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)BPF_FUNC_spin_lock;
static long (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)BPF_FUNC_spin_unlock;
static void *(*bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;
static __u64 (*bpf_ringbuf_query)(void *ring, __u64 flags) = (void *)BPF_FUNC_ringbuf_query;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static long (*bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)BPF_FUNC_clone_redirect;
static long (*bpf_skb_load_bytes)(const struct __sk_buff *skb, __u32 offset, void *to,
				  __u32 len) = (void *)BPF_FUNC_skb_load_bytes;
static long (*bpf_skb_store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
				   __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*bpf_skb_vlan_push)(struct __sk_buff *skb, __be16 proto, __u16 tci) = (void *)BPF_FUNC_skb_vlan_push;
static long (*bpf_skb_vlan_pop)(struct __sk_buff *skb) = (void *)BPF_FUNC_skb_vlan_pop;
static long (*bpf_skb_change_head)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)BPF_FUNC_skb_change_head;
static long (*bpf_skb_change_tail)(struct __sk_buff *skb, __u32 len, __u64 flags) = (void *)BPF_FUNC_skb_change_tail;
static long (*bpf_skb_adjust_room)(struct __sk_buff *skb, __s32 by, __u32 mode,
				   __u64 flags) = (void *)BPF_FUNC_skb_adjust_room;
static long (*bpf_skb_set_tstamp)(struct __sk_buff *skb, __u64 at, __u32 type) = (void *)BPF_FUNC_skb_set_tstamp;

static __s64 (*bpf_csum_diff)(const void *from, __u32 from_bytes, const void *to, __u32 to_bytes,
			    __u32 seed) = (void *)BPF_FUNC_csum_diff;
static long (*bpf_set_hash)(struct __sk_buff *skb, __u32 hash) = (void *)BPF_FUNC_set_hash;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define be16(x) ((u16)__builtin_bswap16((u16)(x)))
#define be32(x) ((u32)__builtin_bswap32((u32)(x)))
#define be64(x) ((u64)__builtin_bswap64((u64)(x)))
#else
#define be16(x) ((u16)(x))
#define be32(x) ((u32)(x))
#define be64(x) ((u64)(x))
#endif
#define be8(x) ((u8)(x))

/* Aligned pieces of `head`; the objects are compiled with -fno-strict-aliasing. */
#define head8(p, at) (*(u8 *)((p)->head + (at)))
#define head16(p, at) (*(u16 *)((p)->head + (at)))
#define head32(p, at) (*(u32 *)((p)->head + (at)))
#define head64(p, at) (*(u64 *)((p)->head + (at)))

/* Keeps the compiler from drawing conclusions about a value that the verifier would not follow. */
#define opaque(x) asm volatile("" : "+r"(x))

/*
 * 1 if the header is valid, else 0; read from memory each time.  A value that is kept, and a branch on
 * it, would leave the verifier two states for every header, and so 2^n for n headers.
 */
#define is_valid(p, bit) ({				\
	u64 v_ = *(volatile u64 *)&(p)->valid;		\
							\
	v_ = (v_ >> (bit)) & 1;				\
	opaque(v_);					\
	v_;						\
})

/* A number that is known to lie in 1 to `most`, a power of two, so that the verifier knows it too. */
#define at_most(x, most) ({				\
	u64 n_ = (u64)(x) - 1;				\
							\
	opaque(n_);					\
	n_ &= (most) - 1;				\
	opaque(n_);					\
	n_ + 1;						\
})

#endif
