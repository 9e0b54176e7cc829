/* SPDX-License-Identifier: GPL-2.0 */
/* testctl_cc.h in the lab's kernel, before the interface: types, and the window's fields. */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/types.h>
#include <net/tcp.h>

static_assert(CC_KERNEL_BYTES <= ICSK_CA_PRIV_SIZE);
static_assert(CC_NAME_BYTES == TCP_CA_NAME_MAX);

static __always_inline u64 cc_div(u64 a, u64 b)
{
	return div64_u64(a, b);
}

static __always_inline void cc_tcp_set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tcp_snd_cwnd_set(tp, cwnd);
}

static __always_inline u32 cc_tcp_state(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state;
}

static __always_inline bool cc_tcp_is_limited(const struct sock *sk)
{
	return tcp_is_cwnd_limited(sk);
}

static __always_inline void *cc_tcp_private(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static __always_inline void cc_tcp_set_pacing(struct sock *sk, u64 bytes_per_s)
{
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, bytes_per_s, READ_ONCE(sk->sk_max_pacing_rate)));
}
