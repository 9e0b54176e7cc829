/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests on many connections, in one thread: both ends have the same schedule and
 * a request has no words of its own.
 *
 * A request is `up` bytes from the client and then `down` bytes from the server.  A
 * connection has one request at a time, in the schedule's order, is opened for its first
 * and closed after its last one.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "tgen.h"

#define REQUESTS_MAX 30000
#define NONE (-1)

struct request {
	int64_t at_ns;	  /* after the flow's start */
	int64_t think_ns; /* after the end of the one before it on its connection */
	int conn;
	int next; /* of the same connection, or NONE */
	uint64_t up;
	uint64_t down;
	int64_t begin_ns; /* client: absolute; connect() or the first write */
	int64_t end_ns;	  /* absolute; the last byte was read by the end that reads */
};

enum state { CLOSED, CONNECTING, WRITING, READING, IDLE, LAST };

struct peer {
	int fd; /* owned */
	enum state state;
	int current; /* request, or NONE */
	uint64_t left;
	uint64_t lowat;
};

struct workload {
	const struct options *opt; /* not owned */
	struct request *requests;  /* owned */
	int *first;		   /* owned; of each connection */
	struct peer *peers;	   /* owned */
	int count;
	int conns;
	int open; /* connections that have not been closed for good */
	int done; /* requests this end has nothing more to do for */
	uint64_t up;
	uint64_t down;
	uint64_t bytes_sent;
	uint64_t bytes_received;
	int poller;
	int clock;
	int64_t clock_ns; /* what it is set to */
	int *waiting;	  /* owned; a heap of connections by due_ns */
	int64_t *due_ns;  /* owned; of each connection */
	int waiters;
	struct failure failure;
	char error[ERROR_SIZE];
};

/* schedule.c */
bool schedule_read(struct workload *w, char error[ERROR_SIZE]);

/* connection.c */
void connection_fail(struct workload *w, int conn, const char *what);
/* Turns to the part of a request that this end reads or writes. */
void connection_turn_to(struct peer *peer, enum state state, uint64_t bytes);
/* After an event on its socket, or when its next request's time has come. */
void connection_go_on(struct workload *w, int conn, uint32_t events);

/* due.c: the connections whose next request is to begin at a time */
void due_push(struct workload *w, int conn, int64_t at_ns);
int due_pop(struct workload *w); /* there is one */

/* workload_result.c */
int workload_write(const struct workload *w);

#endif
