// SPDX-License-Identifier: Apache-2.0
/*
 * What one connection of a workload does, request by request, until it would block.
 *
 * Sockets are edge-triggered: at each wake-up a connection goes on until it would block.
 * A reader's low-water mark is a part of what is still to come, so that of a large
 * request not every packet wakes it.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "workload.h"

#define WRITE_SIZE (256u << 10)

static const char zeros[WRITE_SIZE];

void connection_fail(struct workload *w, int conn, const char *what)
{
	int number = errno;

	failed(&w->failure, number);
	fail_errno(w->error, number, "connection %d: %s", conn, what);
}

static void close_conn(struct workload *w, struct peer *peer)
{
	close(peer->fd);
	*peer = (struct peer){ .fd = -1, .current = NONE };
	w->open--;
}

void connection_turn_to(struct peer *peer, enum state state, uint64_t bytes)
{
	peer->state = state;
	peer->left = bytes;
}

static void next_request(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	const struct request *request = &w->requests[peer->current];
	int64_t at_ns;

	w->done++;
	peer->current = request->next;
	if (peer->current == NONE) {
		peer->state = LAST;
		if (!w->opt->server && shutdown(peer->fd, SHUT_WR) < 0)
			connection_fail(w, conn, "shutdown");
		return;
	}
	request = &w->requests[peer->current];
	if (w->opt->server) {
		connection_turn_to(peer, READING, request->up);
		return;
	}
	peer->state = IDLE;
	at_ns = (int64_t)w->opt->start_ns + request->at_ns;
	if (request->think_ns && now_ns() + request->think_ns > at_ns)
		at_ns = now_ns() + request->think_ns;
	due_push(w, conn, at_ns);
}

/* Everything is written: a client waits for an answer, a server for the next request. */
static void written(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	const struct request *request = &w->requests[peer->current];

	if (!w->opt->server && request->down)
		connection_turn_to(peer, READING, request->down);
	else
		next_request(w, conn);
}

/* Everything is read: a server answers if there is an answer. */
static void was_read(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	struct request *request = &w->requests[peer->current];

	if (w->opt->server && request->down) {
		connection_turn_to(peer, WRITING, request->down);
		return;
	}
	request->end_ns = now_ns();
	next_request(w, conn);
}

/* Whether the connection may go on: false where it would block, or failed. */
static bool write_more(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	size_t most = w->opt->write_size < WRITE_SIZE ? w->opt->write_size : WRITE_SIZE;
	size_t size = peer->left < most ? (size_t)peer->left : most;
	ssize_t n = send(peer->fd, zeros, size, MSG_NOSIGNAL);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			connection_fail(w, conn, "send");
		return errno == EINTR;
	}
	w->bytes_sent += (uint64_t)n;
	peer->left -= (uint64_t)n;
	if (!peer->left)
		written(w, conn);
	return !w->error[0];
}

/*
 * The mark is a small part of the receive buffer, with which it grows (flow.c says why),
 * and at most what is left, so that the last byte wakes us.  It is set before the read
 * that finds nothing more, so that no edge is lost.
 */
static void set_lowat(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	uint64_t lowat = 1;
	int value;

	if (peer->state == READING) {
		lowat = peer->lowat;
		if (lowat < LOWAT_MOST)
			lowat = socket_buffer(peer->fd) / LOWAT_SHARE;
		if (lowat > LOWAT_MOST)
			lowat = LOWAT_MOST;
		if (lowat > peer->left)
			lowat = peer->left;
	}
	if (lowat == peer->lowat)
		return;
	value = (int)lowat;
	if (setsockopt(peer->fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value)) < 0)
		connection_fail(w, conn, "SO_RCVLOWAT");
	peer->lowat = lowat;
}

static bool read_more(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	size_t size = peer->left < READ_SIZE ? (size_t)peer->left : READ_SIZE;
	ssize_t n;

	set_lowat(w, conn);
	n = recv(peer->fd, NULL, size, MSG_TRUNC);
	if (n == 0) {
		failed(&w->failure, 0);
		fail(w->error,
		     "connection %d: the other end closed it %ju bytes before the "
		     "end of a request",
		     conn, (uintmax_t)peer->left);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		connection_fail(w, conn, "recv");
	if (n <= 0)
		return n < 0 && errno == EINTR;
	w->bytes_received += (uint64_t)n;
	peer->left -= (uint64_t)n;
	if (!peer->left)
		was_read(w, conn);
	return !w->error[0];
}

/* Between requests, and after the last one, nothing but the end of file may come. */
static bool read_end(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	ssize_t n;
	char byte;

	set_lowat(w, conn);
	n = recv(peer->fd, &byte, 1, 0);
	if (n > 0)
		fail(w->error, "connection %d: want no more data; got some", conn);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		connection_fail(w, conn, "recv");
	else if (n == 0 && peer->state == IDLE) {
		failed(&w->failure, 0);
		fail(w->error, "connection %d: the other end closed it between requests",
		     conn);
	} else if (n == 0)
		close_conn(w, peer);
	return n < 0 && errno == EINTR && !w->error[0];
}

static bool connected(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	socklen_t length = sizeof(int);
	int number = 0;

	getsockopt(peer->fd, SOL_SOCKET, SO_ERROR, &number, &length);
	if (number) {
		failed(&w->failure, number);
		fail_errno(w->error, number, "connection %d: connect", conn);
	}
	peer->state = WRITING;
	return !number;
}

void connection_go_on(struct workload *w, int conn, uint32_t events)
{
	struct peer *peer = &w->peers[conn];
	bool more = true;

	if (peer->state == CONNECTING && !(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		return;
	while (more && !w->error[0]) {
		switch (peer->state) {
		case CONNECTING:
			more = connected(w, conn);
			break;
		case WRITING:
			more = write_more(w, conn);
			break;
		case READING:
			more = read_more(w, conn);
			break;
		case IDLE:
		case LAST:
			more = read_end(w, conn);
			break;
		case CLOSED:
			more = false;
		}
	}
}
