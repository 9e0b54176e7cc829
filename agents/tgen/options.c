// SPDX-License-Identifier: Apache-2.0
/* The key=value words of `serve` and `send`. */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "tgen.h"

#define KIB UINT64_C(1024)
#define TICK_NS 1000000	 /* the default burst is what the rate gives in this time */
#define BURST_LEAST 1448 /* one segment of MTU 1500 with time stamps */
#define BUFFER_MOST (INT32_MAX / 2) /* the kernel doubles it */

enum kind { NUMBER, FLAG, ENDPOINT, WORD, PATTERN, PAUSES };

struct key {
	const char *name;
	size_t offset;
	enum kind kind;
	uint64_t least;
	uint64_t most;
	const char *help;
};

#define NAMED(field) #field, offsetof(struct options, field)

static const struct key keys[] = {
	{ NAMED(out), WORD, 1, 4000, "file the JSON result is written to" },
	{ NAMED(address), ENDPOINT, 0, 0,
	  "where to listen (serve), or to connect to (send)" },
	{ NAMED(bind), ENDPOINT, 0, 0, "send: the local address" },
	{ NAMED(server_port), NUMBER, 1, 65535, "port of the server" },
	{ NAMED(client_port), NUMBER, 0, 65535,
	  "port of connection 0, the next for 1, ...; 0: any" },
	{ NAMED(parallel), NUMBER, 1, PARALLEL_MAX, "connections" },
	{ NAMED(start_ns), NUMBER, 0, INT64_MAX / 2, "when to connect; 0: now" },
	{ NAMED(end_ns), NUMBER, 0, INT64_MAX / 2, "when to stop writing; 0: never" },
	{ NAMED(limit_ns), NUMBER, 0, INT64_MAX / 2, "when to give up; 0: never" },
	{ NAMED(seed), NUMBER, 0, UINT64_MAX, "of the content that verify checks" },
	{ NAMED(bytes), NUMBER, 0, INT64_MAX / 4,
	  "to send on each connection; 0: no limit" },
	{ NAMED(send_buffer), NUMBER, 0, BUFFER_MOST,
	  "SO_SNDBUF; 0: the kernel tunes it" },
	{ NAMED(receive_buffer), NUMBER, 0, BUFFER_MOST,
	  "SO_RCVBUF; 0: the kernel tunes it" },
	{ NAMED(rate), NUMBER, 0, INT64_MAX / 4,
	  "bit/s of each connection's application; 0: no limit" },
	{ NAMED(burst), NUMBER, 0, INT64_MAX / 4,
	  "bytes at a time at that rate; 0: 1 ms of it" },
	{ NAMED(write_size), NUMBER, 1, 1024 * KIB *KIB, "bytes of one write" },
	{ NAMED(pattern), PATTERN, 0, 0,
	  "greedy; on-off NS/NS; stall at NB|NS for NS; schedule NS:NB,..." },
	{ NAMED(nodelay), FLAG, 0, 1, "TCP_NODELAY" },
	{ NAMED(keepalive), NUMBER, 0, 32767 * (uint64_t)NS_PER_S,
	  "ns between keepalives, whole seconds; 0: off" },
	{ NAMED(keepalive_probes), NUMBER, 0, 127,
	  "unanswered keepalives that end it (TCP_KEEPCNT); 0: the kernel's" },
	{ NAMED(read_rate), NUMBER, 0, INT64_MAX / 4,
	  "bit/s that each connection's receiver reads at; 0: no limit" },
	{ NAMED(resize_ns), NUMBER, 0, INT64_MAX / 4,
	  "ns after the start: when the receiver sets SO_RCVBUF again" },
	{ NAMED(resize_bytes), NUMBER, 0, BUFFER_MOST, "to this; 0: it does not" },
	{ NAMED(read_pause), PAUSES, 0, 0, "NS-NS,... after the start: reads nothing" },
	{ NAMED(user_timeout), NUMBER, 0, INT32_MAX *UINT64_C(1000000),
	  "ns, whole milliseconds: TCP_USER_TIMEOUT; 0: the kernel's" },
	{ NAMED(blocking), FLAG, 0, 1, "blocking calls; off: epoll" },
	{ NAMED(cc), WORD, 1, 15, "congestion control of this flow's sockets" },
	{ NAMED(reverse), FLAG, 0, 1, "the server sends, the client receives" },
	{ NAMED(verify), FLAG, 0, 1, "check every byte at the receiver" },
	{ NAMED(lowat), NUMBER, 0, INT32_MAX / 2,
	  "SO_RCVLOWAT after the first byte; 0: a part of the buffer" },
	{ NAMED(notsent_lowat), NUMBER, 0, INT32_MAX,
	  "TCP_NOTSENT_LOWAT; 0: the kernel's" },
	{ NAMED(requests), WORD, 1, 4000,
	  "file of a workload's requests: lines of AT CONNECTION UP DOWN THINK" },
	{ NAMED(times), WORD, 1, 4000, "file their times are written to" },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

bool endpoint_parse(const char *text, struct endpoint *endpoint)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&endpoint->at;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&endpoint->at;

	memset(endpoint, 0, sizeof(*endpoint));
	if (strlen(text) >= sizeof(endpoint->text))
		return false;
	strcpy(endpoint->text, text);
	if (inet_pton(AF_INET, text, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		endpoint->length = sizeof(*in4);
		return true;
	}
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		endpoint->length = sizeof(*in6);
		return true;
	}
	return false;
}

/* sin_port and sin6_port lie at the same place. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
		       offsetof(struct sockaddr_in6, sin6_port),
	       "one place for the port");

void endpoint_port(struct endpoint *endpoint, uint16_t port)
{
	((struct sockaddr_in *)&endpoint->at)->sin_port = htons(port);
}

uint16_t sockaddr_port(const struct sockaddr_storage *at)
{
	return ntohs(((const struct sockaddr_in *)at)->sin_port);
}

static bool parse_flag(const char *text, uint64_t *value)
{
	*value = !strcmp(text, "on");
	return *value || !strcmp(text, "off");
}

static void set(const struct key *key, const char *text, struct options *opt,
		char error[ERROR_SIZE])
{
	void *to = (char *)opt + key->offset;

	switch (key->kind) {
	case NUMBER:
		if (!parse_u64(text, key->least, key->most, to))
			fail(error, "%s: want a whole number from %ju to %ju; got '%s'",
			     key->name, (uintmax_t)key->least, (uintmax_t)key->most,
			     text);
		break;
	case FLAG:
		if (!parse_flag(text, to))
			fail(error, "%s: want on or off; got '%s'", key->name, text);
		break;
	case ENDPOINT:
		if (!endpoint_parse(text, to))
			fail(error, "%s: want an IPv4 or IPv6 address; got '%s'",
			     key->name, text);
		break;
	case WORD:
		*(const char **)to = text;
		if (strlen(text) < key->least || strlen(text) > key->most)
			fail(error, "%s: want %ju to %ju characters; got '%s'", key->name,
			     (uintmax_t)key->least, (uintmax_t)key->most, text);
		break;
	case PAUSES:
		if (!pauses_parse(text, to))
			fail(error, "%s: want %s; got '%s'", key->name, key->help, text);
		break;
	case PATTERN:
		if (!pattern_parse(text, to))
			fail(error, "%s: want %s; got '%s'", key->name, key->help, text);
		break;
	}
}

static const struct key *find(const char *word, size_t length)
{
	for (size_t i = 0; i < KEYS; i++)
		if (strlen(keys[i].name) == length &&
		    !strncmp(keys[i].name, word, length))
			return &keys[i];
	return NULL;
}

/* What no single key can say. */
static void check_together(const struct options *opt, char error[ERROR_SIZE])
{
	if (!opt->address.length)
		fail(error, "address: is missing");
	if (!opt->server_port)
		fail(error, "server_port: is missing");
	if (opt->bind.length && opt->bind.at.ss_family != opt->address.at.ss_family)
		fail(error, "bind: want the family of address %s; got '%s'",
		     opt->address.text, opt->bind.text);
	if (opt->client_port && opt->client_port + opt->parallel - 1 > 65535)
		fail(error, "client_port: %ju and %ju connections end above 65535",
		     (uintmax_t)opt->client_port, (uintmax_t)opt->parallel);
	if (opt->verify && !opt->client_port)
		fail(error,
		     "verify: wants client_port, by which connections are told apart");
	if (opt->keepalive % NS_PER_S)
		fail(error, "keepalive: want whole seconds; got %ju ns",
		     (uintmax_t)opt->keepalive);
	if (opt->user_timeout % 1000000)
		fail(error, "user_timeout: want whole milliseconds; got %ju ns",
		     (uintmax_t)opt->user_timeout);
	if (opt->burst && !opt->rate)
		fail(error, "burst: wants a rate");
	if (opt->requests && !opt->client_port)
		fail(error,
		     "requests: wants client_port, by which connections are told apart");
}

bool options_parse(int argc, char **argv, bool server, struct options *opt,
		   char error[ERROR_SIZE])
{
	*opt = (struct options){ .server = server,
				 .parallel = 1,
				 .write_size = KIB * KIB,
				 .blocking = 1,
				 .notsent_lowat = KIB * KIB };
	for (int i = 0; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		const struct key *key = equals ? find(argv[i], equals - argv[i]) : NULL;

		if (key)
			set(key, equals + 1, opt, error);
		else
			fail(error, "want key=value with a known key; got '%s'", argv[i]);
	}
	check_together(opt, error);
	if (opt->rate && !opt->burst) {
		opt->burst = opt->rate / 8 * TICK_NS / NS_PER_S;
		if (opt->burst < BURST_LEAST)
			opt->burst = BURST_LEAST;
	}
	if (!opt->start_ns)
		opt->start_ns = now_ns();
	return !error[0];
}

/* With an end in time the sender may stop before all is sent. */
uint64_t options_expected(const struct options *opt)
{
	uint64_t expected = opt->bytes ? opt->bytes : UNLIMITED;

	if (opt->pattern.kind == SCHEDULE && opt->pattern.bytes < expected)
		expected = opt->pattern.bytes;
	return expected;
}

void usage(FILE *to)
{
	fputs("usage: tgen serve KEY=VALUE...\n"
	      "       tgen send KEY=VALUE...\n"
	      "       tgen sample out=FILE interval_ns=N [KEY=VALUE...]\n"
	      "       tgen drain out=FILE map_id=N record_bytes=N\n"
	      "       tgen at start_ns=N PROGRAM [ARGUMENT...]\n\n"
	      "serve and send (both ends are given the same flow):\n",
	      to);
	for (size_t i = 0; i < KEYS; i++)
		fprintf(to, "  %-15s %s\n", keys[i].name, keys[i].help);
	fputs("\nsample: start_ns, end_ns, ports=LIST such as 5001-5004,6000, "
	      "family=inet|inet6\n",
	      to);
}
