// SPDX-License-Identifier: Apache-2.0
/* Where values lie in an ordered column: a walk along it, as values that follow each
 * other are mostly close. */
#ifndef SEARCH_H
#define SEARCH_H
#include <stdbool.h>
#include <stdint.h>

struct line {
	const int64_t *ordered;
	int64_t count;
	bool right; /* as numpy's side: behind equal ones */
	int64_t at; /* the last place found; 0 at first */
};

/* Whether an element comes before the place of a value. */
static inline bool before(int64_t element, int64_t value, bool right)
{
	return right ? element <= value : element < value;
}

/* The place between `low`, below which all come before the value, and `high`, from which
 * on none does. */
static inline int64_t halve(const struct line *line, int64_t low, int64_t high,
			    int64_t value)
{
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (before(line->ordered[middle], value, line->right))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The place of a value, from the last one's on. */
static inline int64_t place_of(struct line *line, int64_t value)
{
	const int64_t *ordered = line->ordered;
	int64_t at = line->at, low = at, high = at, step = 1;

	while (high < line->count && before(ordered[high], value, line->right)) {
		low = high + 1;
		high += step;
		step *= 2;
	}
	high = high < line->count ? high : line->count;
	for (step = 1;
	     low == at && low > 0 && !before(ordered[low - 1], value, line->right);
	     step *= 2) {
		high = low - 1;
		at = low = low > step ? low - step : 0;
	}
	return line->at = halve(line, low, high, value);
}

#endif
