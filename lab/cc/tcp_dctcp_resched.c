// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP whose receiver, when the CE mark changes while an ACK is delayed, sends
 * the ACK for what came before and then schedules the delayed ACK again for the
 * packet that changed the state ("Rethinking the Development and Test of TCP",
 * section 3.3).  The mark's change is then fed back by the next regular ACK.
 *
 * Departs from the paper: its kernel was 4.6, this is the lab's.
 */
#define DCTCP_VARIANT_NAME "dctcp_resched"
#include "dctcp_variant.h"

static void dctcp_variant_ack_owed(struct sock *sk)
{
	inet_csk_clear_xmit_timer(sk, ICSK_TIME_DACK);
	inet_csk_schedule_ack(sk);
}
