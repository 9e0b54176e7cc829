// SPDX-License-Identifier: Apache-2.0
/*
 * One end of a workload (workload.h): one thread, which sleeps in epoll_wait() until a
 * socket, the next request's time or a signal wakes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "workload.h"

#define EVENTS 64
#define OTHER_FILES 16

/* What an event is about: a connection's number, or one of these. */
enum { SIGNAL = REQUESTS_MAX, CLOCK, LISTENER };

static bool watch(struct workload *w, int fd, uint32_t what, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = what };

	if (!epoll_ctl(w->poller, EPOLL_CTL_ADD, fd, &event))
		return true;
	fail_errno(w->error, errno, "epoll");
	return false;
}

static void open_conn(struct workload *w, int conn)
{
	struct peer *peer = &w->peers[conn];
	struct endpoint to = w->opt->address;

	endpoint_port(&to, (uint16_t)w->opt->server_port);
	peer->fd = socket_client(w->opt, conn, w->error);
	if (peer->fd < 0)
		return;
	peer->state = CONNECTING;
	if (fcntl(peer->fd, F_SETFL, O_NONBLOCK) < 0 ||
	    (connect(peer->fd, (struct sockaddr *)&to.at, to.length) < 0 &&
	     errno != EINPROGRESS))
		connection_fail(w, conn, "connect");
	else
		watch(w, peer->fd, (uint32_t)conn, EPOLLIN | EPOLLOUT | EPOLLET);
}

/* The requests whose time has come. */
static void begin_due(struct workload *w)
{
	int64_t now = now_ns();

	while (w->waiters && w->due_ns[w->waiting[0]] <= now && !w->error[0]) {
		int conn = due_pop(w);
		struct peer *peer = &w->peers[conn];
		struct request *request = &w->requests[peer->current];

		request->begin_ns = now_ns();
		connection_turn_to(peer, WRITING, request->up);
		if (peer->fd < 0)
			open_conn(w, conn);
		else
			connection_go_on(w, conn, EPOLLOUT);
	}
}

static void set_clock(struct workload *w)
{
	int64_t limit_ns = w->opt->limit_ns ? (int64_t)w->opt->limit_ns : FOREVER;
	int64_t at_ns = w->waiters ? w->due_ns[w->waiting[0]] : FOREVER;
	struct itimerspec when = { { 0, 0 }, { 0, 0 } };

	if (limit_ns < at_ns)
		at_ns = limit_ns;
	if (at_ns == w->clock_ns)
		return;
	w->clock_ns = at_ns;
	if (at_ns != FOREVER)
		when.it_value = timespec_of(at_ns);
	timerfd_settime(w->clock, TFD_TIMER_ABSTIME, &when, NULL);
}

static void accept_all(struct workload *w, int listener)
{
	struct sockaddr_storage remote;
	socklen_t length = sizeof(remote);
	int fd;

	while ((fd = accept4(listener, (struct sockaddr *)&remote, &length,
			     SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		int conn = sockaddr_port(&remote) - (int)w->opt->client_port;

		if (conn < 0 || conn >= w->conns || w->peers[conn].fd >= 0) {
			fail(w->error,
			     "accept: want client ports %ju to %ju once each; got %d",
			     (uintmax_t)w->opt->client_port,
			     (uintmax_t)w->opt->client_port + (uintmax_t)w->conns - 1,
			     sockaddr_port(&remote));
			close(fd);
			return;
		}
		w->peers[conn].fd = fd;
		connection_turn_to(&w->peers[conn], READING,
				   w->requests[w->peers[conn].current].up);
		if (!watch(w, fd, (uint32_t)conn, EPOLLIN | EPOLLOUT | EPOLLET))
			return;
	}
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		fail_errno(w->error, errno, "accept");
}

static void say_stopped(struct workload *w)
{
	stop_all();
	failed(&w->failure, 0);
	if (w->done == w->count)
		fail(w->error,
		     "stopped: all %d requests are written, and %d connections not "
		     "closed yet by the other end",
		     w->count, w->open);
	fail(w->error, "stopped: %d of %d requests have not ended", w->count - w->done,
	     w->count);
}

static void look(struct workload *w, const struct epoll_event *event, int listener)
{
	uint64_t ticks;

	switch (event->data.u32) {
	case SIGNAL:
		say_stopped(w);
		break;
	case CLOCK:
		if (read(w->clock, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
			fail_errno(w->error, errno, "timerfd");
		if (w->opt->limit_ns && now_ns() >= (int64_t)w->opt->limit_ns)
			say_stopped(w);
		break;
	case LISTENER:
		accept_all(w, listener);
		break;
	default:
		connection_go_on(w, (int)event->data.u32, event->events);
	}
}

static void run(struct workload *w, int listener)
{
	struct epoll_event events[EVENTS];

	while (w->open && !w->error[0]) {
		int n;

		set_clock(w);
		n = epoll_wait(w->poller, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			fail_errno(w->error, errno, "epoll_wait");
		for (int i = 0; i < n && !w->error[0]; i++)
			look(w, &events[i], listener);
		begin_due(w);
	}
}

/* A file for each connection, past the hard limit where we may. */
static void allow_files(rlim_t most)
{
	struct rlimit limit, more = { most, most };

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= most)
		return;
	if (more.rlim_max < limit.rlim_max)
		more.rlim_max = limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &more) < 0)
		setrlimit(RLIMIT_NOFILE, &limit);
}

static bool prepare(struct workload *w, int listener, const sigset_t *set)
{
	size_t count = (size_t)w->conns;
	int signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);

	allow_files(count + OTHER_FILES);
	w->peers = calloc(count, sizeof(*w->peers));
	w->waiting = calloc(count, sizeof(*w->waiting));
	w->due_ns = calloc(count, sizeof(*w->due_ns));
	w->poller = epoll_create1(EPOLL_CLOEXEC);
	w->clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!w->peers || !w->waiting || !w->due_ns)
		fail(w->error, "no memory for %d connections", w->conns);
	else if (w->poller < 0 || w->clock < 0 || signals < 0)
		fail_errno(w->error, errno, "can't wait for sockets, times and signals");
	if (w->error[0])
		return false;
	w->open = w->conns;
	for (int conn = 0; conn < w->conns; conn++) {
		w->peers[conn] = (struct peer){ .fd = -1, .current = w->first[conn] };
		if (listener < 0)
			due_push(w, conn,
				 (int64_t)w->opt->start_ns +
					 w->requests[w->first[conn]].at_ns);
	}
	return watch(w, signals, SIGNAL, EPOLLIN) && watch(w, w->clock, CLOCK, EPOLLIN) &&
	       (listener < 0 || (fcntl(listener, F_SETFL, O_NONBLOCK) == 0 &&
				 watch(w, listener, LISTENER, EPOLLIN)));
}

int workload_run(const struct options *opt, const sigset_t *set)
{
	static struct workload w;
	int listener = -1;

	w.opt = opt;
	if (schedule_read(&w, w.error) && opt->server)
		listener = socket_listen(opt, w.error);
	if (!w.error[0] && prepare(&w, listener, set)) {
		if (opt->server && (puts("ready") < 0 || fflush(stdout)))
			fail_errno(w.error, errno, "can't say ready");
		run(&w, listener);
	}
	if (workload_write(&w) < 0)
		fail(w.error, "the result could not be written");
	if (w.error[0])
		fprintf(stderr, "tgen %s: %s\n", opt->server ? "serve" : "send", w.error);
	return w.error[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}
