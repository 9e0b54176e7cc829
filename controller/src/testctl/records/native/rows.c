// SPDX-License-Identifier: Apache-2.0
/* Rows of a table by what they belong to, and columns of such rows. */
#include <stdint.h>
#include <string.h>

#include "rows.h"

#define TAKE(value, row)                                                                 \
	do {                                                                             \
		const value *from = column;                                              \
		const row *at = rows;                                                    \
		value *result = to;                                                      \
		for (int64_t i = 0; i < count; i++) {                                    \
			if ((uint64_t)at[i] >= (uint64_t)length)                         \
				return i;                                                \
			result[i] = from[at[i]];                                         \
		}                                                                        \
	} while (0)

#define TAKE_BY(row)                                                                     \
	do {                                                                             \
		if (width == 1)                                                          \
			TAKE(uint8_t, row);                                              \
		else if (width == 2)                                                     \
			TAKE(uint16_t, row);                                             \
		else if (width == 4)                                                     \
			TAKE(uint32_t, row);                                             \
		else                                                                     \
			TAKE(uint64_t, row);                                             \
	} while (0)

/* The values of a column of some length at rows, whose numbers have 4 or 8 bytes; how
 * many were taken: all, or those before a row that the column has not. */
int64_t packets_take(const void *column, int32_t width, int64_t length, const void *rows,
		     int32_t row_width, int64_t count, void *to)
{
	if (row_width == 4)
		TAKE_BY(int32_t);
	else
		TAKE_BY(int64_t);
	return count;
}

static int64_t group_of(const struct grouping *by, int64_t row)
{
	int64_t place = (int64_t)by->flow[row] * by->places + by->where[row];

	return (place * 2 + by->direction[row]) * 2 + by->out[row];
}

/*
 * The rows of each group, ascending, one group after the other; a row of none is left
 * out. ends: of each group, where its rows end.
 */
void packets_group(const struct grouping *by)
{
	int64_t sum = 0;

	memset(by->ends, 0, sizeof(*by->ends) * (uint64_t)by->groups);
	for (int64_t row = 0; row < by->count; row++) {
		int64_t group = group_of(by, row);

		if ((uint64_t)group < (uint64_t)by->groups)
			by->ends[group]++;
	}
	for (int64_t group = 0; group < by->groups; group++) {
		int64_t rows = by->ends[group];

		by->ends[group] = sum;
		sum += rows;
	}
	for (int64_t row = 0; row < by->count; row++) {
		int64_t group = group_of(by, row);

		if ((uint64_t)group < (uint64_t)by->groups)
			by->rows[by->ends[group]++] = (int32_t)row;
	}
}
