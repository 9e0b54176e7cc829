// SPDX-License-Identifier: Apache-2.0
/* Sockets: options set and read back, connected, accepted, inspected. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tgen.h"

#define BACKLOG 4096 /* of a workload; the kernel's own limit */

static void set_int(int fd, int level, int name, int value, const char *what,
		    char error[ERROR_SIZE])
{
	if (setsockopt(fd, level, name, &value, sizeof(value)) < 0)
		fail_errno(error, errno, "%s %d", what, value);
}

static int get_int(int fd, int level, int name)
{
	int value = -1;
	socklen_t length = sizeof(value);

	getsockopt(fd, level, name, &value, &length);
	return value;
}

/* A buffer size, past the sysctl's limit where we may; read back: the kernel doubles it.
 */
static void set_buffer(int fd, int force, int plain, uint64_t bytes, const char *what,
		       char error[ERROR_SIZE])
{
	int value = (int)bytes;

	if (!bytes)
		return;
	if (setsockopt(fd, SOL_SOCKET, force, &value, sizeof(value)) < 0)
		set_int(fd, SOL_SOCKET, plain, value, what, error);
	if (get_int(fd, SOL_SOCKET, plain) < 2 * value)
		fail(error,
		     "%s: want %d bytes; got %d (see net.core.wmem_max and rmem_max)",
		     what, value, get_int(fd, SOL_SOCKET, plain) / 2);
}

static void set_keepalive(int fd, const struct options *opt, char error[ERROR_SIZE])
{
	int seconds = (int)(opt->keepalive / NS_PER_S);

	if (opt->keepalive_probes)
		set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)opt->keepalive_probes,
			"keepalive_probes", error);
	if (!seconds)
		return;
	set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "keepalive", error);
	set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds, "keepalive", error);
	set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds, "keepalive", error);
}

/* Everything that must be set before the handshake; a listener's children inherit it. */
static void set_options(int fd, const struct options *opt, char error[ERROR_SIZE])
{
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR", error);
	if (opt->cc &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt->cc, strlen(opt->cc)) < 0)
		fail_errno(error, errno, "cc %s", opt->cc);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, opt->send_buffer, "send_buffer", error);
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, opt->receive_buffer, "receive_buffer",
		   error);
	set_keepalive(fd, opt, error);
	if (opt->nodelay)
		set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1, "nodelay", error);
	if (opt->user_timeout)
		set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
			(int)(opt->user_timeout / 1000000), "user_timeout", error);
	if (opt->notsent_lowat)
		set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int)opt->notsent_lowat,
			"notsent_lowat", error);
}

int socket_listen(const struct options *opt, char error[ERROR_SIZE])
{
	struct endpoint at = opt->address;
	int fd = socket(at.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		fail_errno(error, errno, "socket");
		return -1;
	}
	endpoint_port(&at, (uint16_t)opt->server_port);
	set_options(fd, opt, error);
	if (!error[0] && bind(fd, (struct sockaddr *)&at.at, at.length) < 0)
		fail_errno(error, errno, "bind %s:%ju", at.text,
			   (uintmax_t)opt->server_port);
	if (!error[0] && listen(fd, opt->requests ? BACKLOG : (int)opt->parallel) < 0)
		fail_errno(error, errno, "listen %s:%ju", at.text,
			   (uintmax_t)opt->server_port);
	if (!error[0])
		return fd;
	close(fd);
	return -1;
}

static bool start_polling(struct conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events };

	if (conn->opt->blocking)
		return true;
	conn->poller = epoll_create1(EPOLL_CLOEXEC);
	if (conn->poller < 0 || fcntl(conn->fd, F_SETFL, O_NONBLOCK) < 0 ||
	    epoll_ctl(conn->poller, EPOLL_CTL_ADD, conn->fd, &event) < 0)
		fail_errno(conn->error, errno, "epoll");
	return !conn->error[0];
}

static bool connected(struct conn *conn)
{
	bool sends = conn->opt->server == (bool)conn->opt->reverse;
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);

	conn->connect_ns = now_ns();
	getsockname(conn->fd, (struct sockaddr *)&local, &length);
	conn->local_port = sockaddr_port(&local);
	return start_polling(conn, sends ? EPOLLOUT : EPOLLIN);
}

bool socket_wait(struct conn *conn)
{
	struct epoll_event event;

	if (epoll_wait(conn->poller, &event, 1, -1) < 0 && errno != EINTR)
		fail_errno(conn->error, errno, "epoll_wait");
	return !conn->error[0];
}

static void index_by_port(struct conn *conn)
{
	const struct options *opt = conn->opt;
	int index = conn->remote_port - (int)opt->client_port;

	if (!opt->client_port)
		return;
	if (index < 0 || index >= (int)opt->parallel)
		fail(conn->error, "accept: want client port %ju to %ju; got %d",
		     (uintmax_t)opt->client_port,
		     (uintmax_t)(opt->client_port + opt->parallel - 1),
		     conn->remote_port);
	else
		conn->index = index;
}

bool socket_accept(struct conn *conn)
{
	struct sockaddr_storage remote;
	socklen_t length = sizeof(remote);

	do {
		conn->fd = accept4(conn->listener, (struct sockaddr *)&remote, &length,
				   SOCK_CLOEXEC);
		if (conn->fd < 0 && errno != EINTR && errno != ECONNABORTED)
			fail_errno(conn->error, errno, "accept");
		if (stopping() && conn->fd < 0 && !conn->error[0]) {
			failed(&conn->failure, 0);
			fail(conn->error, "accept: no connection arrived");
		}
	} while (conn->fd < 0 && !conn->error[0]);
	if (conn->fd < 0)
		return false;
	conn->remote_port = sockaddr_port(&remote);
	index_by_port(conn);
	return !conn->error[0] && connected(conn);
}

static void bind_client(const struct options *opt, int index, int fd,
			char error[ERROR_SIZE])
{
	struct endpoint from = opt->bind;
	uint16_t port = opt->client_port ? (uint16_t)(opt->client_port + index) : 0;

	if (!from.length && !port)
		return;
	if (!from.length)
		endpoint_parse(opt->address.at.ss_family == AF_INET ? "0.0.0.0" : "::",
			       &from);
	endpoint_port(&from, port);
	if (bind(fd, (struct sockaddr *)&from.at, from.length) < 0)
		fail_errno(error, errno, "bind %s:%d", from.text, port);
}

int socket_client(const struct options *opt, int index, char error[ERROR_SIZE])
{
	int fd = socket(opt->address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		fail_errno(error, errno, "socket");
		return -1;
	}
	set_options(fd, opt, error);
	if (!error[0])
		bind_client(opt, index, fd, error);
	if (!error[0])
		return fd;
	close(fd);
	return -1;
}

/*
 * Opens and binds at once, connects at the flow's start: each connection a nanosecond
 * after the one before, because threads that wake at one instant do so in the order of
 * their waits.
 */
bool socket_connect(struct conn *conn)
{
	const struct options *opt = conn->opt;
	struct endpoint to = opt->address;

	endpoint_port(&to, (uint16_t)opt->server_port);
	conn->fd = socket_client(opt, conn->index, conn->error);
	if (conn->fd < 0)
		return false;
	if (!sleep_until((int64_t)opt->start_ns + conn->index)) {
		fail(conn->error, "stopped before the flow's start");
		return false;
	}
	conn->begin_ns = now_ns();
	conn->remote_port = (uint16_t)opt->server_port;
	if (connect(conn->fd, (struct sockaddr *)&to.at, to.length) < 0) {
		int number = errno;
		bool stopped = number == EINTR && stopping();

		failed(&conn->failure, stopped ? 0 : number);
		if (stopped)
			fail(conn->error, "connect %s:%ju: no answer until stopped",
			     to.text, (uintmax_t)opt->server_port);
		fail_errno(conn->error, number, "connect %s:%ju%s", to.text,
			   (uintmax_t)opt->server_port,
			   number == EADDRNOTAVAIL
				   ? " (the last use of these ports may be "
				     "in TIME_WAIT)"
				   : "");
		return false;
	}
	return connected(conn);
}

/* What the kernel says of a connection, before it is closed. */
void socket_inspect(struct conn *conn)
{
	socklen_t length = sizeof(conn->info);
	socklen_t cc_length = sizeof(conn->cc) - 1;

	if (conn->fd < 0)
		return;
	getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, &conn->info, &length);
	getsockopt(conn->fd, IPPROTO_TCP, TCP_CONGESTION, conn->cc, &cc_length);
	conn->send_buffer = get_int(conn->fd, SOL_SOCKET, SO_SNDBUF);
	conn->receive_buffer = get_int(conn->fd, SOL_SOCKET, SO_RCVBUF);
}

void socket_lowat(struct conn *conn, uint64_t bytes)
{
	set_int(conn->fd, SOL_SOCKET, SO_RCVLOWAT, (int)bytes, "lowat", conn->error);
}

uint64_t socket_buffer(int fd)
{
	return (uint64_t)get_int(fd, SOL_SOCKET, SO_RCVBUF);
}

void socket_resize(struct conn *conn, uint64_t bytes)
{
	set_buffer(conn->fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes, "receive_buffer_later",
		   conn->error);
}
