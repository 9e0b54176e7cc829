// SPDX-License-Identifier: Apache-2.0
/* Sums over packets. */
#include <stdbool.h>
#include <stdint.h>

static int64_t floored(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

/* The bins that hold something, ascending, and the sum of each; how many.  The amounts
 * have 4 or 8 bytes. */
int64_t walks_bins(const int64_t *time_ns, const void *amounts, int32_t width,
		   int64_t count, int64_t start_ns, int64_t bin_ns, int64_t *number,
		   int64_t *sum)
{
	int64_t found = 0, end_ns = 0;

	for (int64_t i = 0; i < count; i++) {
		int64_t amount = width == 4 ? ((const int32_t *)amounts)[i]
					    : ((const int64_t *)amounts)[i];

		if (!found || time_ns[i] >= end_ns) {
			number[found] = floored(time_ns[i] - start_ns, bin_ns);
			end_ns = start_ns + (number[found] + 1) * bin_ns;
			sum[found++] = 0;
		}
		sum[found - 1] += amount;
	}
	return found;
}

/* Which intervals begin before one that is in front of them; how many. */
int64_t walks_late(const int64_t *start, int64_t count, int64_t *late)
{
	int64_t highest = INT64_MIN, found = 0;

	for (int64_t i = 0; i < count; i++) {
		if (start[i] < highest)
			late[found++] = i;
		else
			highest = start[i];
	}
	return found;
}

/* Bytes that an interval adds to those below `reach`, which it moves on. */
static int64_t added(int64_t start, int64_t end, int64_t *reach)
{
	int64_t from = start > *reach ? start : *reach;

	if (end <= from)
		return 0;
	*reach = end;
	return end - from;
}

/* Bytes of intervals, each counted once.  late: those of walks_late(), which are left
 * out; instead they are given in order of their starts. */
int64_t walks_covered(const int64_t *start, const int64_t *end, int64_t count,
		      const int64_t *late, const int64_t *late_start,
		      const int64_t *late_end, int64_t lates)
{
	int64_t reach = INT64_MIN, total = 0, skipped = 0, next = 0;

	for (int64_t i = 0; i < count; i++) {
		if (skipped < lates && late[skipped] == i) {
			skipped++;
			continue;
		}
		for (; next < lates && late_start[next] < start[i]; next++)
			total += added(late_start[next], late_end[next], &reach);
		total += added(start[i], end[i], &reach);
	}
	for (; next < lates; next++)
		total += added(late_start[next], late_end[next], &reach);
	return total;
}

/* How much longer than the least each packet waited in its host: its time in ms less its
 * timestamp, as ns. */
void walks_waits(const int64_t *time_ns, const int64_t *tsval, int64_t count,
		 int64_t *waited_ns)
{
	const int64_t ms = 1000000;
	int64_t least = INT64_MAX;

	for (int64_t i = 0; i < count; i++) {
		int32_t ticks = (int32_t)(uint32_t)(tsval[i] - tsval[0]);

		waited_ns[i] = floored(time_ns[i], ms) - ticks;
		least = waited_ns[i] < least ? waited_ns[i] : least;
	}
	for (int64_t i = 0; i < count; i++)
		waited_ns[i] = (waited_ns[i] - least) * ms;
}
