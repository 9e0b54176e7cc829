// SPDX-License-Identifier: Apache-2.0
/*
 * One connection's data: written on a schedule, or read and checked.
 *
 * The sender ends with shutdown() and then reads the peer's end of file, which comes
 * after the peer has read everything: by then every byte was acknowledged.  Data that
 * the socket holds when the time is up still drains; TCP_NOTSENT_LOWAT bounds it.
 *
 * The receiver sleeps in recv() until SO_RCVLOWAT bytes are there, and with MSG_WAITALL
 * it sleeps on inside the kernel until a whole piece came (or the end of file).  A mark
 * near the receive window would stop the sender, and with it the kernel's tuning of the
 * window: unless a mark is asked for it is a small part of the receive buffer, and grows
 * with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tgen.h"

#define CHECK_SIZE (1u << 20)
#define LOWAT_READS 64 /* reads of it, after which the mark is looked at again */

/* Mapped with its pages present: page faults are dear in the lab. */
static char *map_buffer(size_t size, char error[ERROR_SIZE])
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED) {
		fail_errno(error, errno, "no memory for a buffer of %zu bytes", size);
		return NULL;
	}
	return at;
}

/* Sends length bytes; less when the alarm is due, when stopping, or with an error. */
static void write_some(struct conn *conn, const char *from, size_t length)
{
	while (length > 0 && !stopping() && !alarm_is_due()) {
		ssize_t n = send(conn->fd, from, length, MSG_NOSIGNAL);

		if (n >= 0) {
			conn->writes++;
			conn->bytes_sent += (uint64_t)n;
			from += n;
			length -= (size_t)n;
		} else if (errno == EAGAIN) {
			if (!socket_wait(conn))
				return;
		} else if (errno != EINTR) {
			int number = errno;

			failed(&conn->failure, number);
			fail_errno(conn->error, number, "send after %ju bytes",
				   (uintmax_t)conn->bytes_sent);
			return;
		}
	}
}

/* Writes up to amount bytes in pieces of write_size; whether all were written. */
static bool write_amount(struct conn *conn, char *buffer, uint64_t amount)
{
	const struct options *opt = conn->opt;

	while (amount > 0) {
		uint64_t size = amount < opt->write_size ? amount : opt->write_size;
		uint64_t before = conn->bytes_sent;

		if (opt->verify)
			content_fill(buffer, size, opt->seed, conn->index, before);
		write_some(conn, buffer, size);
		if (conn->bytes_sent - before < size)
			return false;
		if (amount != UNLIMITED)
			amount -= size;
	}
	return true;
}

static uint64_t left_to_send(const struct conn *conn)
{
	uint64_t bytes = conn->opt->bytes;

	return bytes ? bytes - conn->bytes_sent : UNLIMITED;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Tick n of a rate; 128 bits, because bits times nanoseconds overflow 64 in minutes. */
static int64_t tick_ns(const struct options *opt, int64_t base_ns, uint64_t n)
{
	unsigned __int128 bits = (unsigned __int128)n * opt->burst * 8;

	return base_ns + (int64_t)(bits * NS_PER_S / opt->rate);
}

/*
 * Writes `burst` bytes at each tick.  What a full socket delayed is written as soon as
 * it can be: the offered load is kept, as with an application that queues.
 */
static void write_at_rate(struct conn *conn, char *buffer, uint64_t amount,
			  int64_t base_ns, int64_t close_ns)
{
	for (uint64_t n = 0; amount > 0; n++) {
		uint64_t size = least_of(conn->opt->burst, amount);
		int64_t at_ns = tick_ns(conn->opt, base_ns, n);

		if (!sleep_until(at_ns < close_ns ? at_ns : close_ns) ||
		    at_ns >= close_ns || !write_amount(conn, buffer, size))
			return;
		if (amount != UNLIMITED)
			amount -= size;
	}
}

static void write_phase(struct conn *conn, char *buffer, const struct phase *phase)
{
	uint64_t amount = least_of(phase->bytes, left_to_send(conn));
	int64_t base_ns = now_ns();

	if (base_ns < phase->open_ns) {
		if (!sleep_until(phase->open_ns))
			return;
		base_ns = phase->open_ns;
	}
	if (base_ns >= phase->close_ns)
		return;
	alarm_at(phase->close_ns);
	if (conn->opt->rate)
		write_at_rate(conn, buffer, amount, base_ns, phase->close_ns);
	else
		write_amount(conn, buffer, amount);
	alarm_at(FOREVER);
}

static bool ended(const struct conn *conn, int64_t end_ns)
{
	return conn->error[0] || stopping() || !left_to_send(conn) || now_ns() >= end_ns;
}

static void write_pattern(struct conn *conn, char *buffer)
{
	const struct options *opt = conn->opt;
	int64_t end_ns = opt->end_ns ? (int64_t)opt->end_ns : FOREVER;
	int64_t before_ns = conn->connect_ns;
	struct phase phase;

	for (uint64_t n = 0; !ended(conn, end_ns); n++) {
		uint64_t sent = conn->bytes_sent;

		if (!pattern_phase(&opt->pattern, (int64_t)opt->start_ns, n, before_ns,
				   &phase))
			return;
		if (phase.open_ns >= end_ns) {
			sleep_until(end_ns);
			return;
		}
		if (phase.close_ns > end_ns)
			phase.close_ns = end_ns;
		if (!conn->first_byte_ns && phase.bytes)
			conn->first_byte_ns =
				phase.open_ns > before_ns ? phase.open_ns : before_ns;
		write_phase(conn, buffer, &phase);
		before_ns = now_ns();
		if (conn->bytes_sent > sent)
			conn->last_byte_ns = before_ns;
	}
}

/* recv() until it is not interrupted; -1 with an error, when stopping or the alarm is
 * due. */
static ssize_t read_some(struct conn *conn, void *to, size_t length, int flags)
{
	while (!stopping() && !alarm_is_due()) {
		ssize_t n = recv(conn->fd, to, length, flags);

		if (n >= 0)
			return n;
		if (errno == EAGAIN) {
			if (!socket_wait(conn))
				return -1;
		} else if (errno != EINTR) {
			int number = errno;

			failed(&conn->failure, number);
			fail_errno(conn->error, number, "recv after %ju bytes",
				   (uintmax_t)conn->bytes_received);
			return -1;
		}
	}
	return -1;
}

/*
 * Why a sender was stopped before its end, as far as the kernel knows, and when something
 * moved last: the last ACK that came or, where every byte has one, the last byte sent.
 */
static void explain_stop(struct conn *conn)
{
	const struct tcp_info *info = &conn->info;
	int64_t since_ns = now_ns() - (int64_t)conn->opt->start_ns;
	char timeouts[128] = "";

	if (!conn->error[0])
		failed(&conn->failure, 0);
	socket_inspect(conn);
	if (info->tcpi_retransmits)
		snprintf(timeouts, sizeof(timeouts),
			 ": %u timeouts one after the other, the next %u ms "
			 "after the last",
			 info->tcpi_retransmits, info->tcpi_rto / 1000);
	since_ns -= NS_PER_S / 1000 *
		    (info->tcpi_unacked ? info->tcpi_last_ack_recv
					: info->tcpi_last_data_sent);
	fail(conn->error,
	     "stopped after %ju bytes were written, before the end%s; the last "
	     "progress was %.3f s after the flow's start",
	     (uintmax_t)conn->bytes_sent, timeouts, (double)since_ns / NS_PER_S);
}

static void read_end_of_file(struct conn *conn)
{
	char byte;
	ssize_t n;

	if (conn->poller >= 0) {
		struct epoll_event event = { .events = EPOLLIN };

		epoll_ctl(conn->poller, EPOLL_CTL_MOD, conn->fd, &event);
	}
	n = read_some(conn, &byte, 1, 0);
	if (n == 0)
		conn->closed_ns = now_ns();
	else if (n > 0)
		fail(conn->error, "recv: want the end of file; got data");
}

void flow_send(struct conn *conn)
{
	char *buffer = map_buffer(conn->opt->write_size, conn->error);

	if (!buffer)
		return;
	write_pattern(conn, buffer);
	munmap(buffer, conn->opt->write_size);
	if (conn->error[0])
		return;
	shutdown(conn->fd, SHUT_WR);
	read_end_of_file(conn);
	conn->complete = conn->closed_ns != 0;
	if (!conn->complete)
		explain_stop(conn);
}

/* Reading goes on after a wrong byte, so that the sender's result stays its own. */
static void check(struct conn *conn, const void *got, size_t length, uint64_t offset)
{
	const struct options *opt = conn->opt;
	int64_t bad;

	if (conn->bad_offset != NO_OFFSET)
		return;
	bad = content_check(got, length, opt->seed, conn->index, offset);
	if (bad >= 0)
		conn->bad_offset = (int64_t)offset + bad;
}

static uint64_t wanted_lowat(const struct conn *conn)
{
	if (conn->opt->lowat)
		return conn->opt->lowat;
	return least_of(socket_buffer(conn->fd) / LOWAT_SHARE, LOWAT_MOST);
}

/*
 * Sets the low-water mark, and says how much to read.  The mark is never above what is
 * still to come, so that the last byte of a known number wakes us, and not the end of
 * file after it.
 */
static uint64_t prepare_read(struct conn *conn, uint64_t size)
{
	uint64_t expected = options_expected(conn->opt);
	bool grows = !conn->opt->lowat && conn->lowat < LOWAT_MOST;
	uint64_t lowat = grows ? wanted_lowat(conn) : conn->lowat;

	if (!conn->first_byte_ns || (conn->opt->read_rate && !conn->opt->lowat))
		return size;
	if (!conn->lowat)
		lowat = wanted_lowat(conn);
	if (grows)
		size = least_of(size, LOWAT_READS * lowat);
	if (expected != UNLIMITED && conn->bytes_received < expected) {
		uint64_t left = expected - conn->bytes_received;

		lowat = least_of(lowat, left);
		size = least_of(size, left > lowat ? left - lowat : left);
	}
	if (lowat != conn->lowat)
		socket_lowat(conn, lowat);
	conn->lowat = lowat;
	return size;
}

/* A mark of 1 is an ordinary receiver, which takes what is there. */
static int read_flags(const struct conn *conn)
{
	int flags = conn->opt->verify ? 0 : MSG_TRUNC;

	return conn->opt->blocking && conn->lowat > 1 ? flags | MSG_WAITALL : flags;
}

static void read_all(struct conn *conn, char *buffer)
{
	for (;;) {
		uint64_t most = reader_wait(conn, buffer ? CHECK_SIZE : READ_SIZE);
		uint64_t length = prepare_read(conn, most);
		ssize_t n;

		if (conn->error[0] || !most)
			return;
		n = read_some(conn, buffer, length, read_flags(conn));
		if (n < 0 && !conn->error[0] && !stopping())
			continue; /* a pause begins */
		if (n < 0)
			return;
		if (n == 0) {
			conn->closed_ns = now_ns();
			return;
		}
		conn->reads++;
		conn->last_byte_ns = now_ns();
		if (!conn->first_byte_ns)
			conn->first_byte_ns = conn->last_byte_ns;
		if (buffer)
			check(conn, buffer, (size_t)n, conn->bytes_received);
		conn->bytes_received += (uint64_t)n;
		reader_has_read(conn, (uint64_t)n);
	}
}

static void check_end(struct conn *conn)
{
	uint64_t expected = options_expected(conn->opt);
	uint64_t got = conn->bytes_received;
	bool lacks = expected != UNLIMITED && got < expected && !conn->opt->end_ns;
	bool right = !conn->error[0] && conn->bad_offset == NO_OFFSET;

	if (right && (!conn->closed_ns || lacks))
		failed(&conn->failure, 0);
	if (conn->bad_offset != NO_OFFSET)
		fail(conn->error, "content: the byte at offset %jd is wrong",
		     (intmax_t)conn->bad_offset);
	if (!conn->closed_ns)
		fail(conn->error,
		     "stopped after %ju bytes were read, before the end of file",
		     (uintmax_t)got);
	else if (lacks || got > expected)
		fail(conn->error, "want %ju bytes; got %ju", (uintmax_t)expected,
		     (uintmax_t)got);
	else
		conn->complete = true;
}

void flow_receive(struct conn *conn)
{
	char *buffer = conn->opt->verify ? map_buffer(CHECK_SIZE, conn->error) : NULL;

	if (conn->error[0])
		return;
	read_all(conn, buffer);
	if (buffer)
		munmap(buffer, CHECK_SIZE);
	check_end(conn);
}
