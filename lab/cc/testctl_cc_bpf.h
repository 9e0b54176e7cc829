/* SPDX-License-Identifier: GPL-2.0 */
/*
 * testctl_cc.h as BPF, before the interface: types, and the few fields of the
 * kernel's structures that are used.  Where they lie is found when the program
 * is loaded (CO-RE), so one object serves every kernel with BTF.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#define __always_inline inline __attribute__((always_inline))
#define __maybe_unused	__attribute__((unused))
#define CC_SECTION(name) __attribute__((section(name), used))
#define CC_CORE		 __attribute__((preserve_access_index))

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
} CC_CORE;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[CC_KERNEL_BYTES / 8];
} CC_CORE;

struct tcp_sock {
	u64 tcp_mstamp;
	u32 delivered;
	u32 lost;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 prr_out;
	u32 srtt_us;
	u32 mss_cache;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 max_packets_out;
	u32 undo_marker;
	u8 is_cwnd_limited : 1;
} CC_CORE;

struct ack_sample {
	s32 rtt_us;
} CC_CORE;

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { CA_EVENT_TX_START };

/* A bit field, whose place and size are the kernel's matter; the kinds are enum bpf_field_info_kind's. */
#define CC_BITS(pointer, field)                                                                     \
	({                                                                                          \
		const u8 *at_ = (const u8 *)(pointer) + __builtin_preserve_field_info((pointer)->field, 0); \
		u64 value_ = 0;                                                                     \
		asm volatile("" : "+r"(at_));                                                       \
		switch (__builtin_preserve_field_info((pointer)->field, 1)) {                       \
		case 1:                                                                             \
			value_ = *at_;                                                              \
			break;                                                                      \
		case 2:                                                                             \
			value_ = *(const u16 *)at_;                                                 \
			break;                                                                      \
		case 4:                                                                             \
			value_ = *(const u32 *)at_;                                                 \
			break;                                                                      \
		case 8:                                                                             \
			value_ = *(const u64 *)at_;                                                 \
			break;                                                                      \
		}                                                                                   \
		value_ <<= __builtin_preserve_field_info((pointer)->field, 4);                      \
		value_ >>= __builtin_preserve_field_info((pointer)->field, 5);                      \
		value_;                                                                             \
	})

static __always_inline u64 cc_div(u64 a, u64 b)
{
	return a / b;
}

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline u32 cc_tcp_state(const struct sock *sk)
{
	return CC_BITS((const struct inet_connection_sock *)sk, icsk_ca_state);
}

static __always_inline void *cc_tcp_private(const struct sock *sk)
{
	return (void *)((const struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline void cc_tcp_set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = cwnd;
}

/* tcp_is_cwnd_limited(): in slow start a window half used may grow. */
static __always_inline bool cc_tcp_is_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (CC_BITS(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void cc_tcp_set_pacing(struct sock *sk, u64 bytes_per_s)
{
	u64 most = sk->sk_max_pacing_rate;

	sk->sk_pacing_rate = bytes_per_s < most ? bytes_per_s : most;
}
