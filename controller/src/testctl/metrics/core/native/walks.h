// SPDX-License-Identifier: Apache-2.0
/* What walks over a flow's packets take and give; __init__.py has the same. */
#ifndef WALKS_H
#define WALKS_H
#include <stdbool.h>
#include <stdint.h>

/* The bits of a sequence number on a flow's axis; above them is the connection. */
enum { CONN_BITS = 42 };

/* Departures and ACKs of a part of one connection, both in the order of the capture. */
struct capture {
	const int32_t *data_row;
	const int64_t *data_ns;
	const int64_t *seq;
	const int32_t *length;
	const uint8_t *fin;
	const int16_t *segs;
	const uint8_t *retrans;
	int64_t data;
	const int32_t *ack_row;
	const int64_t *ack_ns;
	const int64_t *ack;
	const int32_t *ack_length;
	int64_t acks;
	const int64_t *sack;	 /* the ACKs that have SACK blocks, ascending */
	const int64_t *sack_top; /* the highest byte of each, -1 before the first */
	int64_t sacks;
	int64_t una; /* snd.una and snd.nxt before the part */
	int64_t nxt;
};

/* The columns of recovery/trace_part.py. */
struct trace {
	int32_t *row;
	int64_t *time_ns;
	uint8_t *is_ack;
	int64_t *seq;
	int64_t *end;
	int32_t *payload;
	int32_t *segs;
	uint8_t *again;
	int64_t *number;
	int64_t *una;
	int64_t *nxt;
	uint8_t *plain;
	int32_t *at;
	int64_t *top;
};

/* Departures and arrivals, each in order of time. */
struct matching {
	const int64_t *end;
	const int64_t *time_ns;
	int64_t departures;
	const int64_t *into_start;
	const int64_t *into_ends; /* ascending */
	const int64_t *by_end;	  /* their rows; NULL: as they are */
	const int64_t *into_ns;
	int64_t arrivals;
	int32_t *arrival;
};

/* Departures packet by packet, and ACKs, by connection and time. */
struct round_trips {
	const int32_t *row;
	const int64_t *start;
	const int64_t *end;
	const uint8_t *once;
	int64_t packets;
	const int64_t *sent_ns;
	const int64_t *highest;
	const int64_t *position; /* NULL: as they are */
	const int64_t *ack_ns;
	int64_t acks;
	/* connection << 47 | time of each retransmission, ascending */
	const int64_t *again;
	int64_t agains;
	int64_t *back_ns;
	int64_t *rtt_ns;
	int16_t *conn;
};

#endif
