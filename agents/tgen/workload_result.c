// SPDX-License-Identifier: Apache-2.0
/*
 * What one end of a workload says: JSON of it as a whole, and a file of its requests'
 * times: for each, in the schedule's order, when it began and when it ended, absolute ns
 * as 64-bit numbers, 0 where this end does not know.
 */
#include <inttypes.h>
#include <string.h>

#include "workload.h"

static bool write_times(const struct workload *w)
{
	FILE *to = open_whole(w->opt->times);

	if (!to)
		return false;
	for (int i = 0; i < w->count; i++) {
		int64_t times[] = { w->requests[i].begin_ns, w->requests[i].end_ns };

		fwrite(times, sizeof(times), 1, to);
	}
	return !close_whole(to, w->opt->times);
}

int workload_write(const struct workload *w)
{
	const struct options *opt = w->opt;
	bool sends = opt->server == (w->down > w->up);
	FILE *to;

	if (opt->times && w->count && !write_times(w))
		return cant_write(opt->times);
	if (!opt->out)
		return 0;
	to = open_whole(opt->out);
	if (to) {
		fprintf(to,
			"{\"generator\": \"tgen\", \"side\": \"%s\", \"role\": \"%s\", ",
			opt->server ? "server" : "client", sends ? "sender" : "receiver");
		put_error(to, w->error);
		json_failure(to, &w->failure);
		fprintf(to,
			", \"start_ns\": %" PRIu64 ", \"requests\": %d, \"done\": %d, "
			"\"bytes_sent\": %" PRIu64 ", \"bytes_received\": %" PRIu64
			", \"stopped\": %s, \"connections\": []}\n",
			opt->start_ns, w->count, w->done, w->bytes_sent,
			w->bytes_received, stopping() ? "true" : "false");
	}
	return !to || close_whole(to, opt->out) < 0 ? cant_write(opt->out) : 0;
}
