// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP whose receiver schedules the delayed ACK again for the packet that
 * changed the CE mark ("Rethinking the Development and Test of TCP", section 3.3;
 * lab/cc/tcp_dctcp_resched.c).
 */
#include "dctcp.h"

static void dctcp_changed(struct sock *sk, int delayed)
{
	if (delayed)
		set_pending(sk, ACK_SCHED);
}

DCTCP_NAMED(dctcp_resched);
