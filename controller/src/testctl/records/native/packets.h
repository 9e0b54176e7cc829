/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From captures and telemetry to columns: what sources, frames and rows share.
 *
 * structures.py has the structures of this file for ctypes, in the same
 * order; packets_sizes() tells their sizes, which it compares.
 */
#ifndef TESTCTL_PACKETS_H
#define TESTCTL_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	FIN = 1,
	SYN = 2,
	ACK = 16,
	EDGES = 8, /* of SACK blocks: four, a start and an end each */
	ACE = 4,   /* of Accurate ECN: the flag AE, and the counters of its option */
	RARE = EDGES + ACE,
	RECORD_HEADER = 16,
	TELEMETRY_FIELDS = 17
};

enum telemetry_field {
	ARRIVAL,
	DEPARTURE,
	QUEUE_BYTES,
	WIRE_BYTES,
	VERDICT,
	FLOW,
	KIND,
	FATE,
	ORDINAL,
	FIRST_ORDINAL,
	SEQ,
	ACK_NUMBER,
	PAYLOAD,
	WINDOW,
	FLAGS,
	ECN_IN,
	ECN_OUT
};

/* What packets_read() returns. */
enum outcome {
	DONE,
	MORE_RARE, /* no memory for more rows of these: call again with more */
	UNORDERED, /* a source is not in order of time, and the rows are to be */
	DAMAGED	   /* packets_check() tells which record of which source */
};

/* A packet of a flow, as a source has it. */
struct packet {
	int64_t time_ns; /* relative to T0 */
	int64_t tsval, tsecr, left_ns;
	int64_t edges[EDGES]; /* as on the wire, -1 for none; only with has_sacks */
	int64_t ace[ACE];     /* AE, then e0, CE, e1 in bytes, -1 for none; only with
				 has_ace */
	uint32_t seq, ack;
	int64_t window;
	int32_t stream, length, headers, queue_bytes, ordinal, first_ordinal;
	int16_t flow, conn;
	int8_t direction, wscale;
	uint8_t flags, ecn, fate;
	bool out, has_sacks, has_ace;
};

/* A pcap file or the telemetry of a switch, a file that is mapped (not owned).  size:
 * whole records of telemetry end there */
struct source {
	const uint8_t *data;
	uint64_t size, at, released; /* released: so much of it was given back */
	uint64_t records;	     /* so many at the most are read in this call */
	int64_t offset_ns;
	uint64_t masks[TELEMETRY_FIELDS]; /* of a field's bytes, read as 8 */
	uint32_t offsets[TELEMETRY_FIELDS];
	uint32_t record_bytes; /* of telemetry; 0: a capture */
	uint32_t fractions, fraction_ns, longest;
	int32_t where, here; /* here: the host that captured; -2 none */
	int32_t big_endian, ended;
	struct packet now;
	int64_t last_ns;
};

/* A direction of a connection.  The first packets of each kind, by time; 0 seen_…: there
 * was none. */
struct stream {
	int64_t syn_ns, data_ns, ack_ns;
	uint32_t syn_seq, data_seq, acked; /* acked: by a packet of the other way */
	uint8_t syn_seen, data_seen, ack_seen, seen;
	int32_t wscale, wscale_where; /* of the last SYN that a capture shows, -1 none */
	uint32_t base;		      /* in: the wire number of the first data byte */
	int32_t shift;		      /* in: of windows */
};

/* A stream as one source has it. */
struct series {
	int64_t seq, ack, highest;
	uint32_t last_seq, last_ack;
	int32_t longest; /* payload; -1: no packet */
	int32_t begun;
	int32_t elsewhere, whole; /* of a flow's first: the longest that others saw, 0 if
				     not known; what one packet may carry */
};

struct address {
	uint8_t bytes[16];
	int32_t size, host;
};

struct columns {
	int64_t *time_ns, *seq, *ack, *window, *tsval, *tsecr, *left_ns;
	int32_t *length, *wire_bytes, *queue_bytes, *ordinal, *first_ordinal;
	int16_t *where, *flow, *conn, *segs;
	int8_t *direction;
	uint8_t *flags, *ecn, *fate;
	uint8_t *retrans, *out; /* bits, all 0 before */
	int64_t *rare; /* RARE each: edges, relative to the acknowledgement, and ace */
	int64_t *rare_row;
};

struct job {
	struct source *sources;
	struct stream *streams;
	struct series *series; /* [source][stream] */
	const struct address *addresses;
	const int16_t *by_port;
	const int32_t *client_port, *parallel; /* by flow */
	const int16_t *from, *to;	       /* by flow: hosts */
	const int16_t *place_flow, *place_conn;
	const int32_t *mtu, *fits; /* by flow; fits: the payload that has space in it */
	struct columns to_columns;
	int64_t t0_ns;
	uint64_t rows, rares, most_rares;
	int32_t count, hosts; /* sources; the first `hosts` of them are captures */
	int32_t flows, conns, places, known; /* known: addresses */
	int32_t merged; /* rows in order of time, or source after source */
	int32_t begun;
};

enum outcome next_packet(const struct job *job, struct source *source);
bool decode_frame(const struct job *job, const struct source *source,
		  const uint8_t *frame, uint32_t captured, uint32_t original,
		  struct packet *packet);

#endif
