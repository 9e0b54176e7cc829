// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP with the receiver of Linux 4.6 and before: the ACK owed for the packet
 * that changed the CE mark is forgotten with all that was pending
 * (lab/cc/tcp_dctcp_bug.c).
 *
 * Departs from it: the delayed ACK's timer runs on and finds nothing to do.
 */
#include "dctcp.h"

static void dctcp_changed(struct sock *sk, int delayed)
{
	if (delayed)
		set_pending(sk, 0);
}

DCTCP_NAMED(dctcp_bug);
