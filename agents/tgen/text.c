// SPDX-License-Identifier: Apache-2.0
/* Numbers, error texts and JSON. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tgen.h"

/* A whole decimal number in [least, most] and nothing else. */
bool parse_u64(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= least && *value <= most;
}

/* "ECONNREFUSED (Connection refused)" */
const char *errno_text(int error, char *buffer, size_t size)
{
	const char *name = strerrorname_np(error);

	snprintf(buffer, size, "%s (%s)", name ? name : "errno", strerror(error));
	return buffer;
}

int cant_write(const char *path)
{
	char name[80];

	fprintf(stderr, "tgen: can't write %s: %s\n", path,
		errno_text(errno, name, sizeof(name)));
	return -1;
}

/* The first error of a connection is the cause; what follows it is not kept. */
void fail(char error[ERROR_SIZE], const char *format, ...)
{
	va_list args;

	if (error[0])
		return;
	va_start(args, format);
	vsnprintf(error, ERROR_SIZE, format, args);
	va_end(args);
}

void fail_errno(char error[ERROR_SIZE], int number, const char *format, ...)
{
	char name[80];
	size_t used;
	va_list args;

	if (error[0])
		return;
	va_start(args, format);
	vsnprintf(error, ERROR_SIZE, format, args);
	va_end(args);
	used = strlen(error);
	snprintf(error + used, ERROR_SIZE - used, ": %s",
		 errno_text(number, name, sizeof(name)));
}

void failed(struct failure *failure, int number)
{
	const char *name = number ? strerrorname_np(number) : "incomplete";

	if (failure->name)
		return;
	failure->name = name ? name : "errno";
	failure->at_ns = now_ns();
}

void json_failure(FILE *to, const struct failure *failure)
{
	fprintf(to, ", \"failure\": ");
	if (failure->name)
		json_string(to, failure->name);
	else
		fputs("null", to);
	fprintf(to, ", \"failed_ns\": %" PRId64, failure->at_ns);
}

void json_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(to, "\\u%04x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static char *partial_name(const char *path)
{
	char *name = NULL;

	return asprintf(&name, "%s.part", path) < 0 ? NULL : name;
}

FILE *open_whole(const char *path)
{
	char *name = partial_name(path);
	FILE *file = name ? fopen(name, "w") : NULL;

	free(name);
	return file;
}

int close_whole(FILE *file, const char *path)
{
	char *name = partial_name(path);
	int bad = ferror(file);

	if (fclose(file) || bad || !name || rename(name, path) < 0)
		bad = -1;
	free(name);
	return bad ? -1 : 0;
}
