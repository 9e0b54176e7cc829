// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP with the receiver of Linux 4.6 and before: when the CE mark changes
 * while an ACK is delayed, the ACK for what came before the change is sent, and
 * sending it clears all that was pending.  The ACK owed for the packet that
 * changed the state is forgotten with its timer, and a sender whose window is
 * closed waits for its own retransmission timer.
 *
 * Departs from 4.6: that kernel kept a flag of its own for "an ACK is delayed";
 * here it is ICSK_ACK_TIMER, which is set and cleared at the same places.
 */
#define DCTCP_VARIANT_NAME "dctcp_bug"
#include "dctcp_variant.h"

/* What tcp_send_ack() did to the pending ACK before it knew special ACKs. */
static void dctcp_variant_ack_owed(struct sock *sk)
{
	inet_csk_clear_xmit_timer(sk, ICSK_TIME_DACK);
}
