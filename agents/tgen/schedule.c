// SPDX-License-Identifier: Apache-2.0
/* The requests of a workload: one a line, "AT CONNECTION UP DOWN THINK". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define LINE_MOST 120

static bool take_u64(char **text, uint64_t most, uint64_t *value)
{
	char *word = strsep(text, " \n");

	return word && parse_u64(word, 0, most, value);
}

static bool read_line(char *line, struct request *request)
{
	uint64_t at, conn, think;

	if (!take_u64(&line, INT64_MAX / 4, &at) ||
	    !take_u64(&line, REQUESTS_MAX - 1, &conn) ||
	    !take_u64(&line, INT64_MAX / 4, &request->up) ||
	    !take_u64(&line, INT64_MAX / 4, &request->down) ||
	    !take_u64(&line, INT64_MAX / 4, &think))
		return false;
	request->at_ns = (int64_t)at;
	request->conn = (int)conn;
	request->think_ns = (int64_t)think;
	request->next = NONE;
	return request->up > 0 && line && !*line;
}

/* The chain of each connection's requests; every connection has one. */
static void chain(struct workload *w, char error[ERROR_SIZE])
{
	int *last = calloc((size_t)w->conns, sizeof(*last));

	w->first = calloc((size_t)w->conns, sizeof(*w->first));
	if (!last || !w->first) {
		fail(error, "no memory for %d connections", w->conns);
		free(last);
		return;
	}
	for (int i = 0; i < w->conns; i++)
		w->first[i] = last[i] = NONE;
	for (int i = 0; i < w->count; i++) {
		int conn = w->requests[i].conn;

		if (last[conn] == NONE)
			w->first[conn] = i;
		else
			w->requests[last[conn]].next = i;
		last[conn] = i;
	}
	for (int i = 0; i < w->conns; i++)
		if (w->first[i] == NONE)
			fail(error, "requests: connection %d has none", i);
	free(last);
}

static void read_lines(struct workload *w, FILE *from, char error[ERROR_SIZE])
{
	char line[LINE_MOST];

	while (!error[0] && fgets(line, sizeof(line), from)) {
		struct request *request = &w->requests[w->count];

		if (w->count == REQUESTS_MAX || !read_line(line, request)) {
			fail(error,
			     "requests: line %d: want AT CONNECTION UP DOWN THINK, at "
			     "most %d lines",
			     w->count + 1, REQUESTS_MAX);
			return;
		}
		if (request->conn >= w->conns)
			w->conns = request->conn + 1;
		w->up += request->up;
		w->down += request->down;
		w->count++;
	}
	if (!w->count)
		fail(error, "requests: the file has none");
}

bool schedule_read(struct workload *w, char error[ERROR_SIZE])
{
	const char *path = w->opt->requests;
	FILE *from = fopen(path, "r");

	if (!from) {
		fail_errno(error, errno, "requests: can't read %s", path);
		return false;
	}
	w->requests = calloc(REQUESTS_MAX, sizeof(*w->requests));
	if (!w->requests)
		fail(error, "no memory for %d requests", REQUESTS_MAX);
	else
		read_lines(w, from, error);
	fclose(from);
	if (!error[0])
		chain(w, error);
	if (!error[0] && w->opt->client_port + (uint64_t)w->conns - 1 > 65535)
		fail(error, "client_port: %ju and %d connections end above 65535",
		     (uintmax_t)w->opt->client_port, w->conns);
	return !error[0];
}
