/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's own DCTCP with another reaction of the receiver to a change of
 * the CE mark (RFC 8257, section 3.2).
 *
 * A variant defines DCTCP_VARIANT_NAME, includes this file and defines
 * dctcp_variant_ack_owed(), which says what becomes of the ACK owed for the
 * packet that changed the state.  Everything else is the file of the kernel
 * tree the lab is built from.
 */
#include <linux/module.h>
#include <linux/string.h>
#include <net/tcp.h>
#include "tcp_dctcp.h"

/* Trees differ in the ACK's flags; Kbuild looks which kind this one is. */
#ifdef TESTCTL_SEND_ACK_HAS_FLAGS
#define dctcp_variant_send_ack(sk, nxt) __tcp_send_ack(sk, nxt, 0)
#else
#define dctcp_variant_send_ack(sk, nxt) __tcp_send_ack(sk, nxt)
#endif

static void dctcp_variant_ack_owed(struct sock *sk);

/* RFC 8257, section 3.2: ACK what came before the change with the old mark. */
static inline void dctcp_variant_ece_ack_update(struct sock *sk,
						enum tcp_ca_event evt,
						u32 *prior_rcv_nxt,
						u32 *ce_state)
{
	u32 new_ce_state = evt == CA_EVENT_ECN_IS_CE ? 1 : 0;

	if (*ce_state != new_ce_state &&
	    inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
		dctcp_ece_ack_cwr(sk, *ce_state);
		dctcp_variant_send_ack(sk, *prior_rcv_nxt);
		dctcp_variant_ack_owed(sk);
	}
	*prior_rcv_nxt = tcp_sk(sk)->rcv_nxt;
	*ce_state = new_ce_state;
	dctcp_ece_ack_cwr(sk, new_ce_state);
}

static int __init dctcp_variant_register(struct tcp_congestion_ops *ops)
{
	strscpy(ops->name, DCTCP_VARIANT_NAME, sizeof(ops->name));
	return tcp_register_congestion_control(ops);
}

#define dctcp_ece_ack_update dctcp_variant_ece_ack_update
#define tcp_register_congestion_control dctcp_variant_register
#include "tcp_dctcp.c"
#undef tcp_register_congestion_control
#undef dctcp_ece_ack_update
