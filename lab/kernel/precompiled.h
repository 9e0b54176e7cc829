/* SPDX-License-Identifier: GPL-2.0 */
/* The headers that most files of a kernel include, or that those include (precompiled.sh). */
#include <linux/kconfig.h>
#include <linux/compiler_types.h>
#include <linux/module.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/highmem.h>
#include <linux/seq_file.h>
#include <linux/writeback.h>
#include <linux/memcontrol.h>
#include <linux/bpf.h>
#include <linux/security.h>
#include <linux/netdevice.h>
#include <linux/ipv6.h>
#include <net/sock.h>
#include <net/netlink.h>
#include <net/ip.h>
#include <net/addrconf.h>
#include <net/inet_connection_sock.h>
