// SPDX-License-Identifier: Apache-2.0
/* Departures of data and arrivals of ACKs in one order. */
#include "walks.h"

static int64_t greater(int64_t one, int64_t other)
{
	return one > other ? one : other;
}

static void put_data(const struct capture *from, int64_t i, const struct trace *to,
		     int64_t event)
{
	to->row[event] = from->data_row[i];
	to->time_ns[event] = from->data_ns[i];
	to->is_ack[event] = false;
	to->seq[event] = from->seq[i];
	to->end[event] = from->seq[i] + from->length[i] + from->fin[i];
	to->payload[event] = from->length[i];
	to->segs[event] = from->length[i] > 0 ? from->segs[i] : 0;
	to->again[event] = from->retrans[i];
	to->number[event] = 0;
	to->plain[event] = false;
	to->at[event] = 0;
	to->top[event] = 0;
}

static void put_ack(const struct capture *from, int64_t i, int64_t sack,
		    const struct trace *to, int64_t event)
{
	bool sacks = sack < from->sacks && from->sack[sack] == i;

	to->row[event] = from->ack_row[i];
	to->time_ns[event] = from->ack_ns[i];
	to->is_ack[event] = true;
	to->seq[event] = 0;
	to->end[event] = 0;
	to->payload[event] = 0;
	to->segs[event] = 0;
	to->again[event] = false;
	to->number[event] = from->ack[i];
	to->plain[event] = from->ack_length[i] == 0;
	to->at[event] = sacks ? (int32_t)(sack + 1) : 0;
	to->top[event] = greater(from->ack[i], sacks ? from->sack_top[sack] : -1);
}

void walks_trace(const struct capture *from, const struct trace *to)
{
	int64_t una = from->una, nxt = from->nxt, data = 0, acks = 0, sack = 0;

	for (int64_t event = 0; event < from->data + from->acks; event++) {
		if (data == from->data ||
		    (acks < from->acks && from->ack_row[acks] < from->data_row[data])) {
			put_ack(from, acks, sack, to, event);
			una = greater(una, to->number[event]);
			sack += to->at[event] > 0;
			acks++;
		} else {
			put_data(from, data, to, event);
			nxt = greater(nxt, to->end[event]);
			data++;
		}
		to->una[event] = una;
		to->nxt[event] = nxt;
	}
}
