/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is recorded of a TCP sender at an event: by the lab's kernel
 * (lab_tcp_trace.c) and by BPF on a running one (tcp_trace.c).  The
 * file that includes this has struct tcp_sock, the types of linux/types.h,
 * tcp_event_get(tp, field) and tcp_event_state(tp), which gives enum tcp_ca_state.
 *
 * Values are those after the event.  The kernel counts a segment among what is
 * in flight only when IP has taken it, so at a transmission it is added here:
 * not to snd_nxt when it is a retransmission, and not to the pipe when that is
 * a tail loss probe's, which tcp_send_loss_probe() does not count either; one
 * that is not in Recovery or Loss is a probe's.
 */
#ifndef TESTCTL_TCP_EVENT_H
#define TESTCTL_TCP_EVENT_H

#define TCP_EVENT_LAYOUT 1	/* another struct below has another number */

enum tcp_event_kind {
	TCP_EVENT_ACK,
	TCP_EVENT_SEND,
	TCP_EVENT_RETRANSMIT,
	TCP_EVENT_TIMEOUT,
};

struct tcp_event {
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u64 acked_bytes;	/* tcp_sock.bytes_acked: with the SYN of who connected */
	__u32 flight_bytes;	/* snd_nxt - snd_una */
	__u32 cwnd;		/* packets, like all up to delivered */
	__u32 ssthresh;
	__u32 pipe;		/* tcp_packets_in_flight() */
	__u32 prior_pipe;	/* before the event */
	__u32 delivered;
	__u32 srtt_us;		/* 0: no sample yet */
	__u32 length;		/* of a transmission: payload, bytes */
	__u16 local_port;
	__u16 remote_port;
	__u16 segs;		/* of a transmission: packets on the wire */
	__u8 kind;
	__u8 state;		/* enum tcp_ca_state */
};

static inline __u32 tcp_event_pipe(const struct tcp_sock *tp)
{
	return tcp_event_get(tp, packets_out) - tcp_event_get(tp, sacked_out) - tcp_event_get(tp, lost_out) +
	       tcp_event_get(tp, retrans_out);
}

static inline void tcp_event_fill(struct tcp_event *e, const struct tcp_sock *tp, __u8 kind, __u32 prior_pipe)
{
	e->acked_bytes = tcp_event_get(tp, bytes_acked);
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
}

/* A transmission of `length` bytes from `seq` on, `span` with the FIN, before IP takes it. */
static inline void tcp_event_sent(struct tcp_event *e, const struct tcp_sock *tp, __u32 seq, __u32 length,
				  __u32 span, __u16 segs)
{
	int again = (__s32)(tcp_event_get(tp, snd_nxt) - seq) > 0;

	tcp_event_fill(e, tp, again ? TCP_EVENT_RETRANSMIT : TCP_EVENT_SEND, tcp_event_pipe(tp));
	e->length = length;
	e->segs = segs;
	if (!again)
		e->flight_bytes = seq + span - tcp_event_get(tp, snd_una);
	if (!again || e->state >= 3 /* TCP_CA_Recovery */)
		e->pipe += segs;
}

#endif
