// SPDX-License-Identifier: GPL-2.0
/*
 * DCTCP whose receiver, when the CE mark changes, acknowledges the packet that
 * changed it at once, as Linux does since 4.19.
 */
#include "dctcp.h"

static void dctcp_changed(struct sock *sk, int delayed)
{
	set_pending(sk, pending(sk) | ACK_NOW);
}

DCTCP_NAMED(dctcp);
