/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From Linux's hooks of a congestion control to the events of testctl_cc.h and
 * back, for the lab's kernel and for BPF alike.
 *
 * cong_control's arguments differ between kernels (a rate sample; from 6.10 on
 * the ACK and its flags too), so none is read: what an ACK delivered or lost is
 * the change of the connection's own counters since the last one.
 *
 * Linux's ssthresh hook does not say why it is called.  With nothing judged lost
 * it was a mark (or a full local queue, which Linux treats alike).
 *
 * Departs from tcp_update_pacing_rate() where cong_control replaces it: the
 * factors are the sysctls' defaults, 200 % in slow start and 120 % after.
 */

static __always_inline void cc_tcp_trace(const struct sock *sk, enum cc_operation op, const struct cc_event *e,
					 const struct cc_window *before, const struct cc_window *after, u32 result);

static __always_inline void cc_tcp_event(const struct sock *sk, const struct cc_track *track, struct cc_event *e)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	e->now_us = tp->tcp_mstamp;
	e->delivered = tp->delivered;
	e->acked = e->delivered - track->delivered;
	e->lost = tp->lost - track->lost;
	e->flight = tp->packets_out;
	e->pipe = e->flight - tp->sacked_out - tp->lost_out + tp->retrans_out;
	e->sent = tp->prr_out;
	e->rtt_us = track->rtt_us;
	e->srtt_us = tp->srtt_us >> 3;
	e->mss_bytes = tp->mss_cache;
	e->prior_cwnd = tp->prior_cwnd;
	e->advanced = tp->snd_una != track->una;
	e->limited = cc_tcp_is_limited(sk);
	__builtin_memset(e->pad, 0, sizeof(e->pad));
}

static __always_inline void cc_tcp_window(const struct sock *sk, struct cc_window *w)
{
	w->cwnd = tcp_sk(sk)->snd_cwnd;
	w->ssthresh = tcp_sk(sk)->snd_ssthresh;
	w->pacing_Bps = 0;
}

/* Remember what was reported, so that the next event reports what is new. */
static __always_inline void cc_tcp_told(const struct sock *sk, struct cc_track *track)
{
	track->una = tcp_sk(sk)->snd_una;
	track->delivered = tcp_sk(sk)->delivered;
	track->lost = tcp_sk(sk)->lost;
	track->rtt_us = 0;
}

/* Tell an event, without changing the kernel's window. */
static __always_inline u32 cc_tcp_tell(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk,
				       enum cc_operation op, struct cc_window *w)
{
	struct cc_private *p = cc_tcp_private(sk);
	struct cc_window before;
	struct cc_event e;
	u32 result;

	cc_tcp_event(sk, &p->track, &e);
	cc_tcp_window(sk, w);
	before = *w;
	result = cc_run(g, r, p, op, &e, w);
	cc_tcp_trace(sk, op, &e, &before, w, result);
	return result;
}

/* Tell an event and do what was decided. */
static __always_inline void cc_tcp_apply(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk,
					 enum cc_operation op)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cc_window w;
	u32 clamp = tp->snd_cwnd_clamp;

	cc_tcp_tell(g, r, sk, op, &w);
	cc_tcp_set_cwnd(tp, cc_max(cc_min(w.cwnd, clamp), 1));
	if (w.pacing_Bps)
		cc_tcp_set_pacing(sk, w.pacing_Bps);
}

static __always_inline void cc_tcp_init(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk)
{
	struct cc_private *p = cc_tcp_private(sk);

	__builtin_memset(p->recovery, 0, sizeof(p->recovery));
	__builtin_memset(p->growth, 0, sizeof(p->growth));
	cc_tcp_told(sk, &p->track);
	cc_tcp_apply(g, r, sk, CC_INIT);
}

static __always_inline u32 cc_tcp_ssthresh(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk)
{
	struct cc_window w;

	if (tcp_sk(sk)->lost_out)
		return cc_tcp_tell(g, r, sk, CC_LOSS, &w);
	return cc_tcp_tell(g, r, sk, CC_ECN, &w);
}

static __always_inline u32 cc_tcp_undo(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk)
{
	struct cc_window w;

	cc_tcp_tell(g, r, sk, CC_UNDO, &w);
	return cc_max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

static __always_inline void cc_tcp_sample(const struct cc_growth *g, const struct cc_recovery *r, struct sock *sk,
					  s32 rtt_us)
{
	struct cc_private *p = cc_tcp_private(sk);
	struct cc_window w;

	if (rtt_us <= 0)
		return;
	p->track.rtt_us = rtt_us;
	if (g->sample)
		cc_tcp_tell(g, r, sk, CC_SAMPLE, &w);
}

static __always_inline void cc_tcp_cwnd_event(const struct cc_growth *g, const struct cc_recovery *r,
					      struct sock *sk, u32 event)
{
	struct cc_window w;

	if (event == CA_EVENT_TX_START && g->restart)
		cc_tcp_tell(g, r, sk, CC_RESTART, &w);
}

/* Called before the state changes. */
static __always_inline void cc_tcp_set_state(const struct cc_growth *g, const struct cc_recovery *r,
					     struct sock *sk, u32 state)
{
	u32 old = cc_tcp_state(sk);
	struct cc_window w;

	if (state == TCP_CA_Loss) {
		if (old != TCP_CA_Loss && g->timeout)
			cc_tcp_tell(g, r, sk, CC_TIMEOUT, &w);
		return;
	}
	if (!r->ack)
		return;
	/* Where retransmissions of a timeout are lost, Linux begins a reduction in Loss. */
	if ((old < TCP_CA_CWR || old == TCP_CA_Loss) && state >= TCP_CA_CWR)
		cc_tcp_apply(g, r, sk, CC_RECOVERY_ENTER);
	/* undo_marker is zero after an undo; a reduction for a mark has none. */
	else if (state < TCP_CA_CWR && (old == TCP_CA_CWR || (old == TCP_CA_Recovery && tcp_sk(sk)->undo_marker)))
		cc_tcp_apply(g, r, sk, CC_RECOVERY_EXIT);
}

/* With the kernel's own reduction: it calls it when the window may grow, and not in recovery. */
static __always_inline void cc_tcp_cong_avoid(const struct cc_growth *g, const struct cc_recovery *r,
					      struct sock *sk, u32 acked)
{
	struct cc_private *p = cc_tcp_private(sk);

	p->track.delivered = tcp_sk(sk)->delivered - acked;
	cc_tcp_apply(g, r, sk, CC_ACK);
	cc_tcp_told(sk, &p->track);
}

static __always_inline void cc_tcp_pace(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tp->mss_cache * tp->snd_cwnd * ((1000000ULL << 3) / 100);
	u32 srtt = tp->srtt_us;

	rate *= tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	if (srtt)
		cc_tcp_set_pacing(sk, cc_div(rate, srtt));
}

/* With a recovery of ours: every ACK that Linux acts upon. */
static __always_inline void cc_tcp_cong_control(const struct cc_growth *g, const struct cc_recovery *r,
						struct sock *sk)
{
	struct cc_private *p = cc_tcp_private(sk);
	u32 state = cc_tcp_state(sk);

	cc_tcp_pace(sk);
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		cc_tcp_apply(g, r, sk, CC_RECOVERY_ACK);
	else if (tcp_sk(sk)->snd_una != p->track.una)
		cc_tcp_apply(g, r, sk, CC_ACK);
	cc_tcp_told(sk, &p->track);
}
