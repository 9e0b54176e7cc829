// SPDX-License-Identifier: Apache-2.0
#include "search.h"

/* As numpy's searchsorted(), for many values. */
void packets_search(const int64_t *ordered, int64_t count, const int64_t *values,
		    int64_t asked, int right, int64_t *places)
{
	struct line line = { ordered, count, right, 0 };

	for (int64_t i = 0; i < asked; i++)
		places[i] = place_of(&line, values[i]);
}
