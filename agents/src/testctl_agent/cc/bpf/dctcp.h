/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCTCP as BPF struct_ops, for running kernels that have none: RFC 8257.
 *
 *	alpha = (1 - g) alpha + g M,  g = 1/16, M the marked part of what was delivered in a window of data
 *	on ECE, once a window   ssthresh = W (1 - alpha / 2)
 *	on loss                 ssthresh = W / 2 (section 3.5)
 *	growth                  Reno's
 *
 * Fixed point: alpha and M 2^-20; alpha falls no further than to 15 * 2^-20.
 *
 * A file tcp_NAME.c defines dctcp_changed() and DCTCP_NAME.  The variants of the lab (lab/cc/tcp_dctcp_*.c) are
 * the lab kernel's own file with another receiver; this text was written from the RFC, and the receivers do to
 * the pending ACK what those do.
 *
 * Departs from the RFC: marks are counted in packets, not bytes; without ECN it is Reno.
 */
#include <linux/bpf.h>

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define CORE	      __attribute__((preserve_access_index))

#define ALPHA_ONE   (1U << 20)
#define G_SHIFT	    4
#define LEAST_CWND  2U
#define PRIVATE_U64 13 /* ICSK_CA_PRIV_SIZE is 104 bytes */

/* enum inet_csk_ack_state_t, and a flag of tcp_sock.ecn_flags */
#define ACK_SCHED  1
#define ACK_TIMER  2
#define ACK_NOW	   16
#define DEMAND_CWR 4

#define CA_EVENT_ECN_NO_CE  4
#define CA_EVENT_ECN_IS_CE  5
#define CA_STATE_RECOVERY   3
#define CA_NON_RESTRICTED   1
#define CA_NEEDS_ECN	    2

struct sock {
	unsigned long sk_pacing_rate;
} CORE;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} CORE icsk_ack;
	u64 icsk_ca_priv[PRIVATE_U64];
} CORE;

struct tcp_sock {
	u32 rcv_nxt;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 delivered;
	u32 delivered_ce;
	u8 ecn_flags;
} CORE;

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	u32 flags;
	char name[16];
};

struct dctcp {
	u32 alpha;
	u32 window_end; /* of the window of data over which M is counted */
	u32 delivered; /* at its begin */
	u32 delivered_ce;
	u32 cwnd_before; /* the last reduction */
	u32 acked_to; /* rcv_nxt before the packet that is being processed */
	u32 ce; /* the mark of the packet before: DCTCP.CE */
};

static long (*const send_ack)(void *tp, u32 rcv_nxt) = (void *)BPF_FUNC_tcp_send_ack;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __attribute__((section(".ksyms")));

static inline __attribute__((always_inline)) struct dctcp *state(struct sock *sk)
{
	return (struct dctcp *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static inline __attribute__((always_inline)) u8 pending(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ack.pending;
}

static inline __attribute__((always_inline)) void set_pending(struct sock *sk, u8 value)
{
	((struct inet_connection_sock *)sk)->icsk_ack.pending = value;
}

/* What the next ACK says of the mark. */
static inline __attribute__((always_inline)) void echo(struct tcp_sock *tp, u32 ce)
{
	if (ce)
		tp->ecn_flags = tp->ecn_flags | DEMAND_CWR;
	else
		tp->ecn_flags = tp->ecn_flags & ~DEMAND_CWR;
}

/* What becomes of the ACK owed for the packet that changed the mark; delayed: another ACK was, and has been sent. */
static inline __attribute__((always_inline)) void dctcp_changed(struct sock *sk, int delayed);

/* Section 3.2: what came before the change is acknowledged with the old mark. */
static inline __attribute__((always_inline)) void received(struct sock *sk, u32 ce)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *ca = state(sk);
	int delayed;

	if (ca->ce != ce) {
		delayed = pending(sk) & ACK_TIMER;
		if (delayed) {
			echo(tp, ca->ce);
			send_ack(sk, ca->acked_to);
		}
		dctcp_changed(sk, delayed);
	}
	ca->acked_to = tp->rcv_nxt;
	ca->ce = ce;
	echo(tp, ce);
}

static inline __attribute__((always_inline)) void new_window(struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

SECTION("struct_ops/init") int dctcp_init(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *ca = state(sk);

	ca->alpha = ALPHA_ONE;
	ca->cwnd_before = 0;
	ca->acked_to = tp->rcv_nxt;
	ca->ce = 0;
	new_window(tp, ca);
	return 0;
}

SECTION("struct_ops/ssthresh") u32 dctcp_ssthresh(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct dctcp *ca = state(sk);
	u32 cwnd = ((struct tcp_sock *)sk)->snd_cwnd, after;

	ca->cwnd_before = cwnd;
	after = cwnd - (u32)(((u64)cwnd * ca->alpha) >> 21);
	return after > LEAST_CWND ? after : LEAST_CWND;
}

SECTION("struct_ops/undo_cwnd") u32 dctcp_undo_cwnd(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	u32 now = ((struct tcp_sock *)sk)->snd_cwnd, before = state(sk)->cwnd_before;

	return now > before ? now : before;
}

SECTION("struct_ops/cong_avoid") int dctcp_cong_avoid(u64 *arguments)
{
	tcp_reno_cong_avoid((struct sock *)arguments[0], (u32)arguments[1], (u32)arguments[2]);
	return 0;
}

SECTION("struct_ops/set_state") int dctcp_set_state(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 half = tp->snd_cwnd / 2;

	if ((u8)arguments[1] != CA_STATE_RECOVERY)
		return 0;
	state(sk)->cwnd_before = tp->snd_cwnd;
	tp->snd_ssthresh = half > LEAST_CWND ? half : LEAST_CWND;
	return 0;
}

SECTION("struct_ops/cwnd_event") int dctcp_cwnd_event(u64 *arguments)
{
	u32 event = (u32)arguments[1];

	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		received((struct sock *)arguments[0], event == CA_EVENT_ECN_IS_CE);
	return 0;
}

SECTION("struct_ops/in_ack_event") int dctcp_in_ack_event(u64 *arguments)
{
	struct sock *sk = (struct sock *)arguments[0];
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp *ca = state(sk);
	u32 delivered, marked;

	if ((s32)(tp->snd_una - ca->window_end) < 0)
		return 0;
	delivered = tp->delivered - ca->delivered;
	marked = tp->delivered_ce - ca->delivered_ce;
	ca->alpha -= ca->alpha >> G_SHIFT;
	if (marked && delivered)
		ca->alpha += (u32)(((u64)marked << (20 - G_SHIFT)) / delivered);
	if (ca->alpha > ALPHA_ONE)
		ca->alpha = ALPHA_ONE;
	new_window(tp, ca);
	return 0;
}

char _license[] SECTION("license") = "GPL";

#define NAMED_(name_)                                                  \
	SECTION(".struct_ops") struct tcp_congestion_ops name_ = {     \
		.init = (void *)dctcp_init,                            \
		.ssthresh = (void *)dctcp_ssthresh,                    \
		.undo_cwnd = (void *)dctcp_undo_cwnd,                  \
		.cong_avoid = (void *)dctcp_cong_avoid,                \
		.set_state = (void *)dctcp_set_state,                  \
		.cwnd_event = (void *)dctcp_cwnd_event,                \
		.in_ack_event = (void *)dctcp_in_ack_event,            \
		.flags = CA_NON_RESTRICTED | CA_NEEDS_ECN,             \
		.name = #name_,                                        \
	}
#define DCTCP_NAMED(name_) NAMED_(name_)
