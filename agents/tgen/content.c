// SPDX-License-Identifier: Apache-2.0
/*
 * The content of a verified flow: a function of seed, connection and offset alone.
 *
 * The eight bytes at offset 8n are splitmix64's n-th output, little-endian, for a key
 * drawn from seed and connection (Steele, Lea and Flood, "Fast splittable pseudorandom
 * number generators", 2014; the finaliser's constants are Stafford's mix 13).
 */
#include <endian.h>
#include <string.h>

#include "tgen.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t key_of(uint64_t seed, int conn)
{
	return mix(mix(seed + GOLDEN) + ((uint64_t)conn + 1) * GOLDEN);
}

static uint64_t word_at(uint64_t key, uint64_t n)
{
	return htole64(mix(key + (n + 1) * GOLDEN));
}

void content_fill(void *to, size_t length, uint64_t seed, int conn, uint64_t offset)
{
	uint64_t key = key_of(seed, conn);
	unsigned char *out = to;

	while (length > 0) {
		uint64_t word = word_at(key, offset / 8);
		size_t skip = offset % 8;
		size_t n = 8 - skip < length ? 8 - skip : length;

		memcpy(out, (unsigned char *)&word + skip, n);
		out += n;
		offset += n;
		length -= n;
	}
}

int64_t content_check(const void *got, size_t length, uint64_t seed, int conn,
		      uint64_t offset)
{
	uint64_t key = key_of(seed, conn);
	const unsigned char *in = got;
	size_t done = 0;

	while (done < length) {
		uint64_t word = word_at(key, (offset + done) / 8);
		const unsigned char *want = (unsigned char *)&word + (offset + done) % 8;
		size_t n = 8 - (offset + done) % 8;

		if (n > length - done)
			n = length - done;
		if (memcmp(in + done, want, n)) {
			for (size_t i = 0; i < n; i++)
				if (in[done + i] != want[i])
					return (int64_t)(done + i);
		}
		done += n;
	}
	return -1;
}
