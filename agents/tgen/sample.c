// SPDX-License-Identifier: Apache-2.0
/*
 * Samples struct tcp_info of this namespace's TCP sockets by inet_diag (sock_diag(7)).
 *
 * File, little-endian: "TGI1", u32 S; then for each socket and sample a `record` and S
 * bytes of tcp_info, zero padded.  S leaves space for kernels newer than our headers:
 * how many bytes the kernel gave is in the record.  The records of one sample carry the
 * same time and are sorted by ports; their order in the kernel's hash is random.
 */
#include <endian.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tgen.h"

#define INFO_SIZE 320
#define REPLY_SIZE (1 << 18)
#define RANGES_MAX 64
#define RECORDS_FIRST 256

/* Connections that carry data, also while they drain after the last write. */
#define STATES                                                                           \
	(1u << TCP_ESTABLISHED | 1u << TCP_FIN_WAIT1 | 1u << TCP_CLOSE_WAIT |            \
	 1u << TCP_CLOSING | 1u << TCP_LAST_ACK)

enum {
	TCP_ESTABLISHED = 1,
	TCP_FIN_WAIT1 = 4,
	TCP_CLOSE_WAIT = 8,
	TCP_LAST_ACK = 9,
	TCP_CLOSING = 11
};

struct record {
	uint64_t time_ns;
	uint16_t local_port;
	uint16_t remote_port;
	uint32_t state;
	uint32_t cookie;
	uint32_t length;
	uint8_t info[INFO_SIZE];
};

_Static_assert(sizeof(struct record) == 24 + INFO_SIZE, "a record has no padding");
_Static_assert(sizeof(struct tcp_info) <= INFO_SIZE, "tcp_info fits");

struct sampler {
	const char *out;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t interval_ns;
	int family;
	int ranges;
	uint16_t low[RANGES_MAX];
	uint16_t high[RANGES_MAX];
	int netlink;		/* owned */
	FILE *file;		/* owned */
	char *reply;		/* owned */
	struct record *records; /* owned */
	size_t count;
	size_t room;
	char error[ERROR_SIZE];
};

/* "5001-5004,6000" */
static bool parse_ports(struct sampler *s, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;
	bool good = copy && *copy;

	while (good && (item = strsep(&rest, ","))) {
		char *high = strchr(item, '-');
		uint64_t from, to;

		if (high)
			*high++ = 0;
		good = s->ranges < RANGES_MAX && parse_u64(item, 1, 65535, &from) &&
		       parse_u64(high ? high : item, from, 65535, &to);
		if (good) {
			s->low[s->ranges] = (uint16_t)from;
			s->high[s->ranges++] = (uint16_t)to;
		}
	}
	free(copy);
	return good;
}

static bool parse_key(struct sampler *s, const char *key, const char *value)
{
	if (!strcmp(key, "out"))
		s->out = value;
	else if (!strcmp(key, "start_ns"))
		return parse_u64(value, 0, INT64_MAX / 2, &s->start_ns);
	else if (!strcmp(key, "end_ns"))
		return parse_u64(value, 0, INT64_MAX / 2, &s->end_ns);
	else if (!strcmp(key, "interval_ns"))
		return parse_u64(value, 1000, 3600 * (uint64_t)NS_PER_S, &s->interval_ns);
	else if (!strcmp(key, "ports"))
		return parse_ports(s, value);
	else if (!strcmp(key, "family") && !strcmp(value, "inet6"))
		s->family = AF_INET6;
	else
		return !strcmp(key, "family") && !strcmp(value, "inet");
	return true;
}

static bool parse(struct sampler *s, int argc, char **argv)
{
	s->family = AF_INET;
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = 0;
		if (!value || !parse_key(s, argv[i], value))
			fail(s->error,
			     "want out, interval_ns (at least 1000), start_ns, end_ns, "
			     "ports "
			     "(such as 5001-5004,6000) or family (inet or inet6); got "
			     "'%s=%s'",
			     argv[i], value ? value : "");
	}
	if (!s->out || !s->interval_ns)
		fail(s->error, "%s: is missing", s->out ? "interval_ns" : "out");
	return !s->error[0];
}

static bool wanted(const struct sampler *s, uint16_t local, uint16_t remote)
{
	for (int i = 0; i < s->ranges; i++)
		if ((local >= s->low[i] && local <= s->high[i]) ||
		    (remote >= s->low[i] && remote <= s->high[i]))
			return true;
	return !s->ranges;
}

static bool ask(struct sampler *s)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = (uint8_t)s->family,
			     .sdiag_protocol = IPPROTO_TCP,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			     .idiag_states = STATES },
	};

	if (send(s->netlink, &message, sizeof(message), 0) < 0)
		fail_errno(s->error, errno, "inet_diag request");
	return !s->error[0];
}

static struct record *new_record(struct sampler *s)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : RECORDS_FIRST;
		struct record *more = reallocarray(s->records, room, sizeof(*more));

		if (!more) {
			fail_errno(s->error, errno, "no memory for %zu records", room);
			return NULL;
		}
		s->records = more;
		s->room = room;
	}
	return memset(&s->records[s->count], 0, sizeof(struct record));
}

static void keep(struct sampler *s, const struct nlmsghdr *header)
{
	const struct inet_diag_msg *socket = NLMSG_DATA(header);
	const struct rtattr *attr = (const struct rtattr *)(socket + 1);
	int left = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*socket));
	uint16_t local = ntohs(socket->id.idiag_sport);
	uint16_t remote = ntohs(socket->id.idiag_dport);
	struct record *record;

	if (!wanted(s, local, remote))
		return;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		size_t length = RTA_PAYLOAD(attr);

		if (attr->rta_type != INET_DIAG_INFO)
			continue;
		record = new_record(s);
		if (!record)
			return;
		if (length > INFO_SIZE)
			length = INFO_SIZE;
		record->local_port = htole16(local);
		record->remote_port = htole16(remote);
		record->state = htole32(socket->idiag_state);
		record->cookie = htole32(socket->id.idiag_cookie[0]);
		record->length = htole32((uint32_t)length);
		memcpy(record->info, RTA_DATA(attr), length);
		s->count++;
		return;
	}
}

/* One datagram of the answer; whether more will come. */
static bool read_reply(struct sampler *s)
{
	ssize_t got = recv(s->netlink, s->reply, REPLY_SIZE, MSG_TRUNC);
	struct nlmsghdr *header = (struct nlmsghdr *)s->reply;
	int left = (int)got;

	if (got < 0 && errno == EINTR)
		return true;
	if (got < 0)
		fail_errno(s->error, errno, "inet_diag answer");
	if (got > REPLY_SIZE)
		fail(s->error, "inet_diag answer: want at most %d bytes; got %zd",
		     REPLY_SIZE, got);
	for (; !s->error[0] && NLMSG_OK(header, left);
	     header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type == NLMSG_DONE)
			return false;
		if (header->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *error = NLMSG_DATA(header);

			fail_errno(s->error, -error->error,
				   "inet_diag (CONFIG_INET_DIAG)");
		} else {
			keep(s, header);
		}
	}
	return !s->error[0];
}

static int by_ports(const void *left, const void *right)
{
	const struct record *a = left, *b = right;

	if (a->local_port != b->local_port)
		return le16toh(a->local_port) < le16toh(b->local_port) ? -1 : 1;
	return (int)le16toh(a->remote_port) - (int)le16toh(b->remote_port);
}

static void collect(struct sampler *s)
{
	s->count = 0;
	if (!ask(s))
		return;
	while (read_reply(s))
		;
}

static void store(struct sampler *s)
{
	int64_t time_ns = now_ns();

	if (s->count)
		qsort(s->records, s->count, sizeof(*s->records), by_ports);
	for (size_t i = 0; i < s->count; i++)
		s->records[i].time_ns = htole64((uint64_t)time_ns);
	if (s->count &&
	    fwrite(s->records, sizeof(*s->records), s->count, s->file) != s->count)
		fail_errno(s->error, errno, "can't write %s", s->out);
}

/*
 * Sleeps until time_ns or a signal to stop; whether to go on.  The timer is absolute: a
 * relative one would be late by all that happens between a look at the clock and the
 * call.
 */
static bool wait_until(const sigset_t *set, timer_t timer, int64_t time_ns)
{
	struct itimerspec when = { .it_value = timespec_of(time_ns) };
	int number;

	timer_settime(timer, TIMER_ABSTIME, &when, NULL);
	do
		number = sigwaitinfo(set, NULL);
	while (number < 0 && errno == EINTR); /* SIGSTOP, SIGCONT */
	return number == SIGRTMIN;	      /* after SIGTERM, when both are there */
}

/*
 * At start, start + interval, …; times that have passed are left out.  Without a start at
 * the multiples of the interval, so that all samplers of a testbed look at the same time.
 */
static void run(struct sampler *s, const sigset_t *set)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	timer_t timer;
	int64_t interval_ns = (int64_t)s->interval_ns;
	int64_t next_ns = s->start_ns ? (int64_t)s->start_ns
				      : (now_ns() / interval_ns + 1) * interval_ns;

	if (timer_create(CLOCK_REALTIME, &event, &timer) < 0)
		fail_errno(s->error, errno, "timer_create");
	while (!s->error[0] && (!s->end_ns || next_ns <= (int64_t)s->end_ns)) {
		int64_t late_ns = now_ns() - next_ns;

		if (late_ns > interval_ns)
			next_ns += late_ns / interval_ns * interval_ns;
		if (!wait_until(set, timer, next_ns))
			return;
		collect(s);
		store(s);
		next_ns += interval_ns;
	}
}

static bool open_all(struct sampler *s)
{
	uint32_t size = htole32(INFO_SIZE);

	s->reply = malloc(REPLY_SIZE);
	s->netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (s->netlink < 0)
		fail_errno(s->error, errno, "netlink socket");
	s->file = open_whole(s->out);
	if (!s->file) {
		fail_errno(s->error, errno, "can't write %s", s->out);
		return false;
	}
	setvbuf(s->file, NULL, _IOFBF, FILE_BUFFER);
	if (fwrite("TGI1", 4, 1, s->file) != 1 || fwrite(&size, 4, 1, s->file) != 1)
		fail_errno(s->error, errno, "can't write %s", s->out);
	return !s->error[0] && s->reply;
}

int sample_main(int argc, char **argv)
{
	static struct sampler s = { .netlink = -1 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!parse(&s, argc, argv)) {
		fprintf(stderr, "tgen sample: %s\n", s.error);
		return EXIT_USAGE;
	}
	if (open_all(&s))
		collect(&s); /* says before the start whether it can be done */
	if (!s.error[0] && (puts("ready") < 0 || fflush(stdout)))
		fail_errno(s.error, errno, "can't say ready");
	if (!s.error[0])
		run(&s, &set);
	if (s.file && close_whole(s.file, s.out) < 0)
		fail_errno(s.error, errno, "can't write %s", s.out);
	if (s.netlink >= 0)
		close(s.netlink);
	free(s.records);
	free(s.reply);
	if (s.error[0])
		fprintf(stderr, "tgen sample: %s\n", s.error);
	return s.error[0] ? EXIT_FAILURE : EXIT_SUCCESS;
}
