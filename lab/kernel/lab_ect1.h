/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ECT(1), by which L4S (RFC 9331) knows the packets of a scalable congestion control.
 *
 * Linux's TCP sends ECT(0) with all of them.  A congestion control of the lab that has this flag
 * sends ECT(1) in its place: the socket's field has it while IP takes a segment (lab_tcp_trace.c).
 */
#ifndef TESTCTL_LAB_ECT1_H
#define TESTCTL_LAB_ECT1_H

#include <net/inet_ecn.h>
#include <net/tcp.h>

#define LAB_CONG_ECT_1 BIT(31)	/* of tcp_congestion_ops.flags, of which Linux has the lowest */

static inline u8 lab_ect1(const struct sock *sk, u8 field)
{
	if (sk->sk_protocol != IPPROTO_TCP || !(inet_csk(sk)->icsk_ca_ops->flags & LAB_CONG_ECT_1) ||
	    (field & INET_ECN_MASK) != INET_ECN_ECT_0)
		return field;
	return (field & ~INET_ECN_MASK) | INET_ECN_ECT_1;
}

#endif
