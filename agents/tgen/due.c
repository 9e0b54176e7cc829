// SPDX-License-Identifier: Apache-2.0
/* A binary heap of connections; of those due at one instant the lower number is first. */
#include "workload.h"

static bool before(const struct workload *w, int a, int b)
{
	if (w->due_ns[a] != w->due_ns[b])
		return w->due_ns[a] < w->due_ns[b];
	return a < b;
}

static void swap(int *a, int *b)
{
	int kept = *a;

	*a = *b;
	*b = kept;
}

void due_push(struct workload *w, int conn, int64_t at_ns)
{
	int *heap = w->waiting;
	int i = w->waiters++;

	w->due_ns[conn] = at_ns;
	heap[i] = conn;
	for (; i > 0 && before(w, heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

int due_pop(struct workload *w)
{
	int *heap = w->waiting;
	int found = heap[0];

	heap[0] = heap[--w->waiters];
	for (int i = 0, child; (child = 2 * i + 1) < w->waiters; i = child) {
		if (child + 1 < w->waiters && before(w, heap[child + 1], heap[child]))
			child++;
		if (!before(w, heap[child], heap[i]))
			break;
		swap(&heap[i], &heap[child]);
	}
	return found;
}
