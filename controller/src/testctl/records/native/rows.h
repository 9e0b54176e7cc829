// SPDX-License-Identifier: Apache-2.0
#ifndef ROWS_H
#define ROWS_H
#include <stdint.h>

/* Columns of a table by which its rows are told apart; structures.py has the same. */
struct grouping {
	const int16_t *flow;
	const int16_t *where;
	const int8_t *direction;
	const uint8_t *out;
	int64_t count;
	int64_t places; /* values of `where` */
	int64_t groups;
	int64_t *ends;
	int32_t *rows;
};

#endif
