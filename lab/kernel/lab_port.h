/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the port's qdisc (lab_port.c) and its active queue managements (aqm_*.h) share.
 *
 * An AQM has the packets that wait at a port.  It gets each with arrive() and gives the next to
 * serialise with leave(); it may drop any (port_drop()) and mark any (port_mark()).  Its times are
 * those of the port's model: leave() is called at the instant, rounded up to a nanosecond, at
 * which the line becomes free, also when the kernel's timer is late.
 */
#ifndef TESTCTL_LAB_PORT_H
#define TESTCTL_LAB_PORT_H

#include <linux/math64.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#define PORT_WORDS 12
#define NANOBITS_PER_BYTE 8000000000ULL

/* TCA_OPTIONS; agents/src/testctl_agent/network/port_qdisc.py writes and reads it. */
struct port_options {
	u64 rate_bps;
	u64 delay_ns;
	u64 buffer_bytes;	/* 0: no limit */
	u64 framing_bytes;
	u64 kind;		/* enum aqm_kind */
	u64 seed;
	u64 word[PORT_WORDS];	/* the AQM's own, by the enum in its header */
};

enum aqm_kind { AQM_FIFO, AQM_POLICER, AQM_DUALPI2, AQM_RED, AQM_CHILD, AQM_KINDS };

/* What became of a packet; in the rows of /proc/testctl_port. */
enum port_end { PORT_SENT, PORT_MARKED, PORT_DROPPED, PORT_FULL };

/*
 * Lies at the end of a packet's control block while it waits, behind what a qdisc of Linux's has there and the reason
 * that it writes there when it drops the packet (struct tc_skb_cb); once the packet is sent, `ns` is when it departs.
 */
struct port_packet {
	u64 ns : 48;		/* when it arrived: three days from boot on */
	u64 number : 16;	/* among the port's packets of that instant; the last one for all that follow */
	u32 queue_bytes : 30;	/* what it found waiting */
	u32 had_ce : 1;		/* when it arrived */
	u32 marked : 1;
} __packed __aligned(4);

#define PORT_MOST_NUMBER U16_MAX

#define PORT_MOST_QUEUE_BYTES ((1U << 30) - 1)

struct port_counts {
	u64 marked;
	u64 dropped;		/* by the AQM */
	u64 full;		/* by the buffer */
};

struct lab_port;

struct aqm {
	u32 state_bytes;	/* of port->state, which is zeroed before begin() */
	int (*check)(const struct port_options *options);	/* 0 or -EINVAL */
	void (*begin)(struct lab_port *port);	/* must not sleep */
	void (*end)(struct lab_port *port);	/* frees all packets */
	void (*arrive)(struct lab_port *port, struct sk_buff *skb, u64 now_ns);
	struct sk_buff *(*leave)(struct lab_port *port, u64 now_ns);	/* NULL: none is left; asked also then */
	void (*update)(struct lab_port *port, u64 now_ns);	/* every update_ns from the first packet on */
	u32 update_word;	/* the word that is update_ns */
};

struct lab_port {
	struct Qdisc *sch;
	struct port_options options;
	const struct aqm *aqm;
	void *state;			/* (owned) the AQM's own */
	struct Qdisc *child;		/* (owned) NULL: the AQM is our own */
	bool asks;			/* once more when the line is free, whatever waits */
	u64 latest_ns;			/* when a packet arrived last, and */
	u32 number;			/* its place among those of that instant */
	u64 packets;			/* that wait in the AQM, not the one that is being serialised */
	u64 bytes;			/* theirs, with framing */
	u64 free_ns;			/* the line is free then, and */
	u64 free_nanobits;		/* the time that these take later */
	u64 idle_from_ns;		/* nothing waited and the line was free as the last packet came; U64_MAX: not so */
	u64 update_ns;			/* the AQM's next update; 0: no packet has come yet */
	u64 random;			/* of testctl_random_next() */
	siphash_key_t key;		/* of the hash of a child's packets */
	struct sk_buff_head line;	/* serialised, or being: until they arrive */
	u64 line_bytes;			/* theirs, without framing */
	struct port_counts counts;
	struct qdisc_watchdog timer;
};

static void port_drop(struct lab_port *port, struct sk_buff *skb);
static bool port_mark(struct lab_port *port, struct sk_buff *skb);

/* Bytes of a packet of the device's MTU, with framing */
static inline u64 port_largest(const struct lab_port *port)
{
	return psched_mtu(qdisc_dev(port->sch)) + port->options.framing_bytes;
}

static inline struct port_packet *port_packet(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct qdisc_skb_cb) + sizeof(u32) + sizeof(struct port_packet) > sizeof(skb->cb));
	return (struct port_packet *)(skb->cb + sizeof(skb->cb)) - 1;
}

static inline u64 port_bytes(const struct lab_port *port, const struct sk_buff *skb)
{
	return qdisc_pkt_len(skb) + port->options.framing_bytes;
}

#endif
