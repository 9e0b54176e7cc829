// SPDX-License-Identifier: Apache-2.0
/* The records of a written pcap file (walk.c: ns, little-endian), and the same in another
 * order. */
#include "capture.h"

enum { FILE_HEADER = 24, RECORD_HEADER = 16, NS = 1000000000 };

/* Time and place of each of at most `most` records; how many. */
uint64_t capture_index(const uint8_t *data, uint64_t size, uint64_t most,
		       int64_t *time_ns, uint64_t *places)
{
	uint64_t at = FILE_HEADER, count = 0;

	while (count < most && size - at >= RECORD_HEADER) {
		uint32_t header[4];

		memcpy(header, data + at, sizeof(header));
		time_ns[count] = (int64_t)header[0] * NS + header[1];
		places[count++] = at;
		at += RECORD_HEADER + header[2];
	}
	return count;
}

/* The records at these places, one after the other, behind the file's header. */
void capture_reorder(const uint8_t *data, const uint64_t *places, uint64_t count,
		     uint8_t *to)
{
	memcpy(to, data, FILE_HEADER);
	to += FILE_HEADER;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *record = data + places[i];
		uint32_t captured;

		memcpy(&captured, record + 8, sizeof(captured));
		memcpy(to, record, RECORD_HEADER + captured);
		to += RECORD_HEADER + captured;
	}
}
