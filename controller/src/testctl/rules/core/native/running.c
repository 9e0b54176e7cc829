// SPDX-License-Identifier: Apache-2.0
/*
 * What held at each row of a trace by the rows around it, connection by connection.  All
 * take the number of rows, numbers of their own, the first rows of connections, columns,
 * the rows whose result is wanted, and the result.  none: what stands for no number; of:
 * the rows that count.  ../rows.py says what each gives.
 */
#include "search.h"

void running_highest(int64_t count, int64_t none, int64_t inclusive,
		     const uint8_t *begins, const int64_t *values, const uint8_t *of,
		     const uint8_t *among, int64_t *result)
{
	int64_t highest = none;

	for (int64_t i = 0; i < count; i++) {
		int64_t before = begins[i] ? none : highest;

		highest = of[i] && values[i] > before ? values[i] : before;
		if (among[i])
			result[i] = inclusive ? highest : before;
	}
}

void running_latest(int64_t count, const uint8_t *begins, const uint8_t *of,
		    const uint8_t *among, int64_t *result)
{
	int64_t latest = -1;

	for (int64_t i = 0; i < count; i++) {
		if (begins[i])
			latest = -1;
		if (among[i])
			result[i] = latest;
		if (of[i])
			latest = i;
	}
}

void running_following(int64_t count, const uint8_t *begins, const uint8_t *of,
		       const uint8_t *among, int64_t *result)
{
	int64_t following = -1;

	for (int64_t i = count - 1; i >= 0; i--) {
		if (among[i])
			result[i] = following;
		following = begins[i] ? -1 : of[i] ? i : following;
	}
}

void running_count(int64_t count, const uint8_t *begins, const int64_t *values,
		   const uint8_t *of, const uint8_t *among, int64_t *result)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < count; i++) {
		if (begins[i])
			sum = 0;
		if (among[i])
			result[i] = sum;
		if (of[i])
			sum += values[i];
	}
}

/* The end of the connection that begins at a row. */
static int64_t end_of(const uint8_t *begins, int64_t begin, int64_t count)
{
	int64_t end = begin + 1;

	while (end < count && !begins[end])
		end++;
	return end;
}

/* scratch: twice as long as the columns; the rows that raise the maximum, and it. */
void running_reached(int64_t count, int64_t none, const uint8_t *begins,
		     const int64_t *values, const uint8_t *of, const int64_t *numbers,
		     int64_t *scratch, const uint8_t *among, int64_t *result)
{
	int64_t *rows = scratch, *top = scratch + count;

	for (int64_t i = 0, end; i < count; i = end) {
		struct line line = { top, 0, false, 0 };
		int64_t highest = none;

		end = end_of(begins, i, count);
		for (int64_t row = i; row < end; row++) {
			if (of[row] && values[row] > highest) {
				rows[line.count] = row;
				top[line.count++] = highest = values[row];
			}
		}
		for (int64_t row = i; row < end; row++) {
			int64_t number = numbers[row] > none ? numbers[row] : none + 1;
			int64_t at;

			if (!among[row])
				continue;
			at = place_of(&line, number);
			result[row] = at < line.count ? rows[at] : -1;
		}
	}
}

void running_settled(int64_t count, int64_t none, int64_t within, const uint8_t *begins,
		     const int64_t *values, const int64_t *time, int64_t *scratch,
		     const uint8_t *among, int64_t *result)
{
	for (int64_t i = 0, end; i < count; i = end) {
		struct line line = { time + i, 0, false, 0 };
		int64_t highest = none;

		end = end_of(begins, i, count);
		line.count = end - i;
		for (int64_t row = i; row < end; row++) {
			highest = values[row] > highest ? values[row] : highest;
			scratch[row] = highest;
		}
		for (int64_t row = i; row < end; row++) {
			int64_t at;

			if (!among[row])
				continue;
			at = place_of(&line, time[row] - within);
			result[row] = at ? scratch[i + at - 1] : none;
		}
	}
}

void running_instant(int64_t count, int64_t within, const uint8_t *begins,
		     const int64_t *time, const uint8_t *among, int64_t *result)
{
	for (int64_t i = 0, end; i < count; i = end) {
		struct line line = { time + i, 0, false, 0 };

		end = end_of(begins, i, count);
		line.count = end - i;
		for (int64_t row = i; row < end; row++)
			if (among[row])
				result[row] = i + place_of(&line, time[row] - within);
	}
}
