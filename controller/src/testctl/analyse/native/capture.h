/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anybody's capture, from its bytes to connections: what its parts share.
 *
 * structures.py has the structures of this file for ctypes, in the same order;
 * capture_sizes() returns their sizes, which it compares.
 */
#ifndef TESTCTL_CAPTURE_H
#define TESTCTL_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* HOLES: gaps of the numbers seen that are remembered, the latest. */
enum { RECENT = 4, HOLES = 4 };
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16, ECE = 64, CWR = 128 };
enum { INTERFACES = 256, NOT_KNOWN = 255, MOST_RECORD = 1 << 24, MOST_FRAME = 1 << 20 };

enum format { NO_FORMAT, PCAP, PCAPNG };

/* Why a capture can't be read on. */
enum damage {
	WHOLE,
	NO_CAPTURE,    /* another magic number */
	BAD_LENGTH,    /* of a record */
	BAD_BLOCK,     /* of pcapng: its two lengths differ, or it is too short */
	BAD_INTERFACE, /* of pcapng: a packet of one that was not described */
	NO_MEMORY
};

/* What the capture itself says of a frame. */
enum side { NOT_SAID, INBOUND, OUTBOUND };

struct interface {
	uint64_t per_second; /* units of its times */
	int64_t offset_s;
	uint32_t link;
	uint32_t decimal; /* per_second is a power of 10 up to 10^9: ns of a unit; 0: not
			   */
};

/* A frame in the caller's memory (not owned). */
struct frame {
	int64_t time_ns;
	const uint8_t *bytes;
	uint32_t captured, original, link;
	enum side side;
};

/* A TCP segment of a frame; `ip` and `tcp` are the headers' first bytes. */
struct segment {
	const uint8_t *ip, *tcp;
	int32_t payload;
	uint32_t tcp_bytes, tcp_captured; /* the header's length; what of it is there */
	uint8_t family, ecn, ttl, flags;
	uint16_t sport, dport, window;
	uint32_t seq, ack;
	bool partial; /* the checksum of one that its host's card was to complete */
};

/* Numbers that were not seen when the packet behind them passed, at `time_ns`, with this
 * identification of IP (0: none). */
struct hole {
	int64_t time_ns;
	uint32_t start, end;
	uint32_t number;
	uint32_t unused;
};

/*
 * A connection.  Its ends are 0, the sender of its first packet, and 1; [end] is of what
 * that end sent.  Times are in ns, -1 none.
 */
struct connection {
	uint8_t address[2][16];
	int64_t first_ns, last_ns;
	int64_t syn_ns, synack_ns, ack_ns; /* of the handshake */
	int64_t silent_ns;		   /* the longest time without a packet */
	int64_t recent_ns[2]
			 [RECENT]; /* the last packets: their times and what they are */
	uint64_t recent[2][RECENT];
	struct hole holes[2][HOLES];
	uint64_t bytes[2];	      /* payload */
	uint32_t packets[2], data[2]; /* data: those with payload */
	uint32_t again[2];     /* with bytes that had been seen, or were lost before */
	uint32_t reordered[2]; /* with bytes that another packet overtook */
	uint32_t zero_windows[2], resets[2], fins[2], syns[2];
	uint32_t outgoing[2], incoming[2]; /* the capture says that it was leaving its
					      sender, arriving at the other end */
	uint32_t partial[2], copies[2];	   /* copies: of a packet just before */
	uint32_t too_big[2]; /* ICMP messages that ask for smaller packets */
	uint32_t isn[2], highest[2];
	uint32_t acked[2];   /* the highest acknowledgement of its data */
	uint32_t largest[2]; /* payload */
	uint32_t before; /* the one of the same addresses and ports before it, + 1; 0 none
			  */
	uint32_t hash;
	uint16_t port[2], mss[2];
	uint8_t syn_seen[2], begun[2], ttl[2], syn_flags[2], ect[2], acks_seen[2];
	int8_t wscale[2];
	uint8_t family, opener; /* opener: the end that sent the SYN, or NOT_KNOWN */
};

/* Where a connection's packets are written. */
struct target {
	uint32_t client_host, server_host;
	uint16_t client_port, server_port;
	uint8_t client;	 /* end */
	uint8_t written; /* 0: left out; 2: without copies */
};

struct walk {
	struct interface interfaces[INTERFACES];
	struct connection *connections;
	uint32_t *slots;
	const struct target *targets; /* (not owned) NULL: nothing is written */
	const uint8_t *twice; /* (not owned) NULL: copies count; else of which connections
				 they do not */
	uint8_t *output;      /* (not owned) */
	uint64_t size, used;  /* of the output */
	uint64_t at;	      /* in the file */
	uint64_t frames, tcp, not_tcp, fragments, cut, short_ip, without_time, odd_time;
	uint64_t unlisted;
	uint64_t unknown_link, backwards; /* frames; backwards: before the one in front */
	int64_t backwards_ns, last_ns, first_ns, final_ns, highest_ns;
	int64_t base_ns, offset_ns, drift_ppb, drift_from_ns; /* of what is written */
	uint32_t count, capacity, mask, most;		      /* connections */
	uint32_t known, extra;		 /* interfaces; bytes of a record header */
	uint32_t some_link, fraction_ns; /* some_link: the last unknown one */
	int32_t format, big_endian, damage, full;
	int32_t swapped;  /* an old pcap: the two lengths change places */
	int32_t verbatim; /* whole IP and TCP headers are written, of all connections */
};

/* The next record of data[*at..size): 1 there is a frame, 0 none (more bytes are needed,
 * or walk->damage). */
int next_frame(struct walk *walk, const uint8_t *data, uint64_t size, uint64_t *at,
	       struct frame *frame);
bool find_segment(struct walk *walk, struct frame *frame, struct segment *segment);
struct connection *note_segment(struct walk *walk, const struct frame *frame,
				struct segment *segment, int *end, bool *copy);
void note_too_big(struct walk *walk, const uint8_t *ip, uint32_t there);
void write_segment(struct walk *walk, const struct frame *frame,
		   const struct segment *segment, const struct target *target, int end);

static inline uint16_t be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t be32(const uint8_t *at)
{
	return (uint32_t)be16(at) << 16 | be16(at + 2);
}

#endif
