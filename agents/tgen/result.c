// SPDX-License-Identifier: Apache-2.0
/* The JSON result of one end.  Times are absolute ns; null is "did not happen". */
#include <inttypes.h>
#include <string.h>

#include "tgen.h"

static void put_time(FILE *to, const char *name, int64_t time_ns)
{
	if (time_ns)
		fprintf(to, ", \"%s\": %" PRId64, name, time_ns);
	else
		fprintf(to, ", \"%s\": null", name);
}

void put_error(FILE *to, const char *error)
{
	fprintf(to, "\"error\": ");
	if (error[0])
		json_string(to, error);
	else
		fputs("null", to);
}

static void put_tcp_info(FILE *to, const struct tcp_info *info)
{
	fprintf(to,
		", \"tcp_info\": {\"state\": %u, \"snd_cwnd\": %u, \"snd_ssthresh\": %u, "
		"\"rtt_us\": %u, \"rttvar_us\": %u, \"min_rtt_us\": %u, \"rto_us\": %u, "
		"\"snd_mss\": %u, \"rcv_mss\": %u, \"pmtu\": %u, "
		"\"total_retrans\": %u, \"lost\": %u, \"reord_seen\": %u, "
		"\"delivered\": %u, \"delivered_ce\": %u, \"segs_out\": %u, "
		"\"segs_in\": %u, ",
		info->tcpi_state, info->tcpi_snd_cwnd, info->tcpi_snd_ssthresh,
		info->tcpi_rtt, info->tcpi_rttvar, info->tcpi_min_rtt, info->tcpi_rto,
		info->tcpi_snd_mss, info->tcpi_rcv_mss, info->tcpi_pmtu,
		info->tcpi_total_retrans, info->tcpi_lost, info->tcpi_reord_seen,
		info->tcpi_delivered, info->tcpi_delivered_ce, info->tcpi_segs_out,
		info->tcpi_segs_in);
	fprintf(to,
		"\"bytes_acked\": %llu, \"bytes_received\": %llu, "
		"\"bytes_sent\": %llu, \"bytes_retrans\": %llu, \"busy_us\": %llu, "
		"\"rwnd_limited_us\": %llu, \"sndbuf_limited_us\": %llu}",
		info->tcpi_bytes_acked, info->tcpi_bytes_received, info->tcpi_bytes_sent,
		info->tcpi_bytes_retrans, info->tcpi_busy_time, info->tcpi_rwnd_limited,
		info->tcpi_sndbuf_limited);
}

/* null when nothing was checked, or not to the end and without a wrong byte */
static const char *verified(const struct options *opt, const struct conn *conn)
{
	bool receives = opt->server != (bool)opt->reverse;

	if (!opt->verify || !receives)
		return "null";
	if (conn->bad_offset != NO_OFFSET)
		return "false";
	return conn->complete ? "true" : "null";
}

/* When the flow was over for this end: all acknowledged, or the last byte read. */
static int64_t completion_ns(const struct options *opt, const struct conn *conn)
{
	bool sends = opt->server == (bool)opt->reverse;
	int64_t at_ns = sends ? conn->closed_ns : conn->last_byte_ns;

	return conn->complete && at_ns ? at_ns - (int64_t)opt->start_ns : 0;
}

static void put_conn(FILE *to, const struct options *opt, const struct conn *conn)
{
	fprintf(to,
		"    {\"conn\": %d, \"local_port\": %u, \"remote_port\": %u, "
		"\"bytes_sent\": %" PRIu64 ", \"bytes_received\": %" PRIu64
		", \"writes\": %" PRIu64 ", \"reads\": %" PRIu64,
		conn->index, conn->local_port, conn->remote_port, conn->bytes_sent,
		conn->bytes_received, conn->writes, conn->reads);
	put_time(to, "begin_ns", conn->begin_ns);
	put_time(to, "connect_ns", conn->connect_ns);
	put_time(to, "first_byte_ns", conn->first_byte_ns);
	put_time(to, "last_byte_ns", conn->last_byte_ns);
	put_time(to, "closed_ns", conn->closed_ns);
	put_time(to, "fct_ns", completion_ns(opt, conn));
	fprintf(to, ", \"complete\": %s, \"verified\": %s",
		conn->complete ? "true" : "false", verified(opt, conn));
	if (conn->bad_offset == NO_OFFSET)
		fputs(", \"bad_offset\": null", to);
	else
		fprintf(to, ", \"bad_offset\": %" PRId64, conn->bad_offset);
	fprintf(to, ", \"send_buffer\": %d, \"receive_buffer\": %d, \"cc\": ",
		conn->send_buffer, conn->receive_buffer);
	json_string(to, conn->cc);
	put_tcp_info(to, &conn->info);
	json_failure(to, &conn->failure);
	fputs(", ", to);
	put_error(to, conn->error);
	fputc('}', to);
}

int result_write(const struct options *opt, const struct conn *conns,
		 const char error[ERROR_SIZE])
{
	bool sends = opt->server == (bool)opt->reverse;
	FILE *to;

	if (!opt->out)
		return 0;
	to = open_whole(opt->out);
	if (!to)
		return cant_write(opt->out);
	fprintf(to, "{\"generator\": \"tgen\", \"side\": \"%s\", \"role\": \"%s\",\n ",
		opt->server ? "server" : "client", sends ? "sender" : "receiver");
	put_error(to, error);
	put_time(to, "start_ns", (int64_t)opt->start_ns);
	put_time(to, "end_ns", (int64_t)opt->end_ns);
	fprintf(to, ", \"stopped\": %s,\n \"connections\": [",
		stopping() ? "true" : "false");
	for (uint64_t i = 0; conns && i < opt->parallel; i++) {
		fputs(i ? ",\n" : "\n", to);
		put_conn(to, opt, &conns[i]);
	}
	fputs("]}\n", to);
	return close_whole(to, opt->out) < 0 ? cant_write(opt->out) : 0;
}
