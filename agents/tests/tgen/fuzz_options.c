// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzzes what tgen is given: the words of `serve` and `send` (a word a line; the first
 * byte says which), the phases that follow from their pattern, the words of `sample`, the
 * result it writes, and the content that it checks.  `make -C agents/tgen fuzz` builds
 * and runs it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../../tgen/sample.c"

#define WORDS_MAX 64
#define PHASES 256
#define CONTENT 4096

static int split(char *text, char *words[WORDS_MAX])
{
	int count = 0;

	for (char *word; count < WORDS_MAX && (word = strsep(&text, "\n"));)
		words[count++] = word;
	return count;
}

static void phases(const struct options *opt)
{
	struct phase phase = { 0, 0, 0 };
	int64_t before_ns = (int64_t)opt->start_ns;

	for (uint64_t n = 0; n < PHASES; n++) {
		if (!pattern_phase(&opt->pattern, (int64_t)opt->start_ns, n, before_ns,
				   &phase))
			break;
		assert(phase.open_ns >= (int64_t)opt->start_ns);
		assert(phase.open_ns <= phase.close_ns);
		before_ns = phase.open_ns;
	}
	assert(options_expected(opt) > 0);
}

static void content(const struct options *opt)
{
	static unsigned char bytes[CONTENT];
	uint64_t offset = opt->bytes;
	size_t length = opt->write_size % CONTENT;

	content_fill(bytes, length, opt->seed, (int)opt->parallel, offset);
	assert(content_check(bytes, length, opt->seed, (int)opt->parallel, offset) == -1);
	if (length) {
		bytes[length / 2] ^= 1;
		assert(content_check(bytes, length, opt->seed, (int)opt->parallel,
				     offset) == (int64_t)(length / 2));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[ERROR_SIZE] = "";
	struct sampler sampler = { .netlink = -1 };
	struct options opt;
	char *words[WORDS_MAX], *text;
	int count;

	if (!size)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	count = split(text, words);
	if (data[0] & 2) {
		parse(&sampler, count, words);
	} else if (options_parse(count, words, data[0] & 1, &opt, error)) {
		phases(&opt);
		content(&opt);
	} else {
		assert(memchr(error, 0, sizeof(error)));
		opt.out = "/dev/null/no";
		assert(result_write(&opt, NULL, error));
	}
	free(text);
	return 0;
}
