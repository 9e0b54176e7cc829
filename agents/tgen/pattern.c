// SPDX-License-Identifier: Apache-2.0
/*
 * When the application writes, as a sequence of phases.
 *
 *	greedy					always
 *	on-off ON/OFF				ON ns of writing, OFF ns of silence, …
 *	stall at NB for FOR			FOR ns of silence after N bytes
 *	stall at AT for FOR			FOR ns of silence from AT on
 *	schedule AT:NB,AT:NB,…			N bytes each at AT
 *
 * Numbers are ns and, with a B after them, bytes; times count from the flow's start.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tgen.h"

#define LONGEST_NS (1000000 * NS_PER_S) /* so that no sum of times overflows */

/* Reads a number that `after` follows; moves *text behind both. */
static bool take(const char **text, const char *after, uint64_t least, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 10);
	if (errno || *value < least || *value > INT64_MAX / 4)
		return false;
	if (strncmp(end, after, strlen(after)))
		return false;
	*text = end + strlen(after);
	return true;
}

static bool take_ns(const char **text, const char *after, uint64_t least, int64_t *value)
{
	uint64_t number;

	if (!take(text, after, least, &number) || number > (uint64_t)LONGEST_NS)
		return false;
	*value = (int64_t)number;
	return true;
}

static bool skip(const char **text, const char *word)
{
	if (strncmp(*text, word, strlen(word)))
		return false;
	*text += strlen(word);
	return true;
}

static bool parse_schedule(const char *text, struct pattern *pattern)
{
	int n = 0;

	pattern->bytes = 0;
	do {
		if (n == SCHEDULE_MAX || !take_ns(&text, ":", 0, &pattern->at_ns[n]) ||
		    !take(&text, "B", 1, &pattern->write_bytes[n]))
			return false;
		if (n && pattern->at_ns[n] < pattern->at_ns[n - 1])
			return false;
		pattern->bytes += pattern->write_bytes[n];
		if (pattern->bytes > INT64_MAX / 4)
			return false;
		n++;
	} while (skip(&text, ","));
	pattern->writes = n;
	return !*text;
}

bool pattern_parse(const char *text, struct pattern *pattern)
{
	if (!strcmp(text, "greedy")) {
		pattern->kind = GREEDY;
		return true;
	}
	if (skip(&text, "on-off ")) {
		pattern->kind = ON_OFF;
		return take_ns(&text, "/", 1, &pattern->a_ns) &&
		       take_ns(&text, "", 1, &pattern->b_ns) && !*text;
	}
	if (skip(&text, "stall at ")) {
		const char *again = text;

		pattern->kind = STALL_BYTES;
		if (!take(&text, "B for ", 1, &pattern->bytes)) {
			text = again;
			pattern->kind = STALL_TIME;
			if (!take_ns(&text, " for ", 0, &pattern->a_ns))
				return false;
		}
		return take_ns(&text, "", 1, &pattern->b_ns) && !*text;
	}
	pattern->kind = SCHEDULE;
	return skip(&text, "schedule ") && parse_schedule(text, pattern);
}

bool pattern_phase(const struct pattern *pattern, int64_t start_ns, uint64_t n,
		   int64_t before_ns, struct phase *phase)
{
	*phase = (struct phase){ start_ns, FOREVER, UNLIMITED };
	switch (pattern->kind) {
	case GREEDY:
		return n == 0;
	case ON_OFF:
		phase->open_ns += (int64_t)n * (pattern->a_ns + pattern->b_ns);
		phase->close_ns = phase->open_ns + pattern->a_ns;
		return true;
	case STALL_BYTES:
		if (n == 0)
			phase->bytes = pattern->bytes;
		else
			phase->open_ns = before_ns + pattern->b_ns;
		return n < 2;
	case STALL_TIME:
		if (n == 0)
			phase->close_ns = start_ns + pattern->a_ns;
		else
			phase->open_ns = start_ns + pattern->a_ns + pattern->b_ns;
		return n < 2;
	case SCHEDULE:
		if (n >= (uint64_t)pattern->writes)
			return false;
		phase->open_ns += pattern->at_ns[n];
		phase->bytes = pattern->write_bytes[n];
		return true;
	}
	return false;
}
