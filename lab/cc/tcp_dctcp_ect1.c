// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own DCTCP (RFC 8257) that sends ECT(1) in place of ECT(0), so that a DualQ Coupled
 * AQM takes its packets for L4S (RFC 9332).
 *
 * All but the field is the file of the kernel tree the lab is built from.  So it has none of what
 * RFC 9331 wants of a congestion control beyond DCTCP's: no reduced dependence on the RTT, no
 * pacing, no fall back to Reno where a bottleneck is not L4S, no Accurate ECN.
 */
#include <linux/module.h>
#include <linux/string.h>
#include <net/tcp.h>
#include "lab_ect1.h"

static int __init dctcp_ect1_register(struct tcp_congestion_ops *ops)
{
	strscpy(ops->name, "dctcp_ect1", sizeof(ops->name));
	ops->flags |= LAB_CONG_ECT_1;
	return tcp_register_congestion_control(ops);
}

#define tcp_register_congestion_control dctcp_ect1_register
#include "tcp_dctcp.c"
#undef tcp_register_congestion_control
