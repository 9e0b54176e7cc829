/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is recorded of a TCP sender at an event: by the lab's kernel
 * (lab_tcp_trace.c) and by BPF on a running one (tcp_trace.c).  The
 * file that includes this has struct tcp_sock, the types of linux/types.h,
 * struct sock, tcp_event_get(pointer, field), and functions:
 * tcp_event_state(tp) gives enum tcp_ca_state, tcp_event_full(sk) whether the
 * application waits for space in the send buffer (SOCK_NOSPACE), and
 * tcp_event_cc(sk, words) fills in what the congestion control says of itself
 * (union tcp_cc_info) and gives its kind, INET_DIAG_BBRINFO or another; 0: nothing.
 *
 * Values are those after the event.  The kernel counts a segment among what is
 * in flight only when IP has taken it, so at a transmission it is added here:
 * not to snd_nxt when it is a retransmission, and not to the pipe when that is
 * a tail loss probe's, which tcp_send_loss_probe() does not count either; one
 * that is not in Recovery or Loss is a probe's.
 */
#ifndef TESTCTL_TCP_EVENT_H
#define TESTCTL_TCP_EVENT_H

#define TCP_EVENT_LAYOUT 2	/* another struct below has another number */

enum tcp_event_kind {
	TCP_EVENT_ACK,
	TCP_EVENT_SEND,
	TCP_EVENT_RETRANSMIT,
	TCP_EVENT_TIMEOUT,
};

enum tcp_event_limit {
	TCP_LIMIT_NOTHING,	/* the next segment leaves in the same turn */
	TCP_LIMIT_APPLICATION,	/* less than a packet to send */
	TCP_LIMIT_SEND_BUFFER,	/* likewise, and the application waits for space */
	TCP_LIMIT_RECEIVER_WINDOW,
	TCP_LIMIT_CWND,
	TCP_LIMIT_PACING,
};

#define TCP_EVENT_CC_WORDS 5

struct tcp_event {
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u64 acked_bytes;	/* tcp_sock.bytes_acked: with the SYN of who connected */
	__u64 pacing_rate;	/* bytes/s, like all rates; ~0: no limit */
	__u64 delivery_rate;	/* tcp_compute_delivery_rate(); 0: no sample yet */
	__u32 flight_bytes;	/* snd_nxt - snd_una */
	__u32 cwnd;		/* packets, like all up to delivered */
	__u32 ssthresh;
	__u32 pipe;		/* tcp_packets_in_flight() */
	__u32 prior_pipe;	/* before the event */
	__u32 delivered;
	__u32 srtt_us;		/* 0: no sample yet */
	__u32 length;		/* of a transmission: payload, bytes */
	__u32 cc[TCP_EVENT_CC_WORDS];	/* the begin of union tcp_cc_info */
	__u16 local_port;
	__u16 remote_port;
	__u16 segs;		/* of a transmission: packets on the wire */
	__u8 kind;
	__u8 state;		/* enum tcp_ca_state */
	__u8 limit;		/* enum tcp_event_limit */
	__u8 cc_kind;		/* of cc: INET_DIAG_BBRINFO, _DCTCPINFO, _VEGASINFO; 0: none */
	__u16 spare;
};

static inline __u32 tcp_event_pipe(const struct tcp_sock *tp)
{
	return tcp_event_get(tp, packets_out) - tcp_event_get(tp, sacked_out) - tcp_event_get(tp, lost_out) +
	       tcp_event_get(tp, retrans_out);
}

static inline __u64 tcp_event_delivery_rate(const struct tcp_sock *tp)
{
	__u64 packets = tcp_event_get(tp, rate_delivered), interval_us = tcp_event_get(tp, rate_interval_us);

	return interval_us ? packets * tcp_event_get(tp, mss_cache) * 1000000 / interval_us : 0;
}

/* Whether pacing holds back the next transmission; `sends`: the one before is under way. */
static inline int tcp_event_paced(const struct tcp_event *e, const struct tcp_sock *tp, int sends)
{
	const struct sock *sk = (const struct sock *)tp;

	if (tcp_event_get(sk, sk_pacing_status) != 1 /* SK_PACING_NEEDED */)
		return 0;
	if (tcp_event_get(tp, tcp_wstamp_ns) > tcp_event_get(tp, tcp_clock_cache))
		return 1;
	return sends && e->pacing_rate && e->pacing_rate != ~0ULL && tcp_event_get(tp, data_segs_out) >= 10;
}

/* What limits the sender after the event; `next`: the first number not sent yet, `again`: packets retransmitted by it. */
static inline __u8 tcp_event_limit(const struct tcp_event *e, const struct tcp_sock *tp, __u32 next, __u32 again)
{
	__u32 mss = tcp_event_get(tp, mss_cache), edge = tcp_event_get(tp, snd_una) + tcp_event_get(tp, snd_wnd);
	__s32 unsent = tcp_event_get(tp, write_seq) - next;

	if (e->pipe >= e->cwnd)
		return TCP_LIMIT_CWND;
	if (tcp_event_get(tp, lost_out) <= tcp_event_get(tp, retrans_out) + again) {
		if (unsent > 0 && (__s32)(next + (unsent < (__s32)mss ? unsent : mss) - edge) > 0)
			return TCP_LIMIT_RECEIVER_WINDOW;
		if (unsent < (__s32)mss)
			return tcp_event_full((const struct sock *)tp) ? TCP_LIMIT_SEND_BUFFER : TCP_LIMIT_APPLICATION;
	}
	return tcp_event_paced(e, tp, e->segs) ? TCP_LIMIT_PACING : TCP_LIMIT_NOTHING;
}

/* All but the limit. */
static inline void tcp_event_values(struct tcp_event *e, const struct tcp_sock *tp, __u8 kind, __u32 prior_pipe)
{
	const struct sock *sk = (const struct sock *)tp;

	e->acked_bytes = tcp_event_get(tp, bytes_acked);
	e->pacing_rate = tcp_event_get(sk, sk_pacing_rate);
	e->delivery_rate = tcp_event_delivery_rate(tp);
	e->flight_bytes = tcp_event_get(tp, snd_nxt) - tcp_event_get(tp, snd_una);
	e->cwnd = tcp_event_get(tp, snd_cwnd);
	e->ssthresh = tcp_event_get(tp, snd_ssthresh);
	e->pipe = tcp_event_pipe(tp);
	e->prior_pipe = prior_pipe;
	e->delivered = tcp_event_get(tp, delivered);
	e->srtt_us = tcp_event_get(tp, srtt_us) >> 3;
	e->length = 0;
	e->segs = 0;
	e->kind = kind;
	e->state = tcp_event_state(tp);
	e->cc_kind = tcp_event_cc(sk, e->cc);
	e->spare = 0;
}

static inline void tcp_event_fill(struct tcp_event *e, const struct tcp_sock *tp, __u8 kind, __u32 prior_pipe)
{
	tcp_event_values(e, tp, kind, prior_pipe);
	e->limit = tcp_event_limit(e, tp, tcp_event_get(tp, snd_nxt), 0);
}

/* A transmission of `length` bytes from `seq` on, `span` with the FIN, before IP takes it. */
static inline void tcp_event_sent(struct tcp_event *e, const struct tcp_sock *tp, __u32 seq, __u32 length,
				  __u32 span, __u16 segs)
{
	__u32 next = tcp_event_get(tp, snd_nxt);
	int again = (__s32)(next - seq) > 0;

	tcp_event_values(e, tp, again ? TCP_EVENT_RETRANSMIT : TCP_EVENT_SEND, tcp_event_pipe(tp));
	e->length = length;
	e->segs = segs;
	if (!again) {
		next = seq + span;
		e->flight_bytes = next - tcp_event_get(tp, snd_una);
	}
	if (!again || e->state >= 3 /* TCP_CA_Recovery */)
		e->pipe += segs;
	e->limit = tcp_event_limit(e, tp, next, again ? segs : 0);
}

#endif
