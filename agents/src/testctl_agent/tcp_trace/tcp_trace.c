// SPDX-License-Identifier: GPL-2.0
/*
 * TCP's internals at every ACK, transmission and timeout, on a running kernel with BTF.
 *
 * Tracepoints, because they need no function tracer: tcp_probe, where
 * tcp_rcv_established() begins; net_dev_queue, where a packet comes to its
 * device, in the same call that sent it; tcp_cong_state_set; tcp_destroy_sock.
 * So what an ACK did is read at the connection's next event: nothing but these
 * changes it in between, except `limit`, which counts what the application has
 * written since.  Not seen: ACKs that tcp_rcv_state_process() handles (after the
 * FIN has been sent), what the congestion control says of itself, and who waits
 * for a neighbour's address; on stacked devices (a VLAN's) a transmission is
 * recorded once a device.
 *
 * The ring is drained when it is half full.  trace_lost[0] counts packets of
  * transmissions, and other events, that did not fit into the ring.  It also
 * counts packets that the tracepoint missed, which happens on a busy machine:
 * TCP's own count of sent segments (data_segs_out) is then larger than the
 * number of recorded ones.  Missed ACKs are not counted; they occur together
 * with missed packets.
 * trace_namespace[0] is the inode of the one network namespace that is traced;
 * 0: none.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define RING_BYTES (1U << 24)
#define LOSS 4			/* TCP_CA_Loss */
#define FIN 1
#define SYN 2
#define PROTOCOL_TCP 6
#define SOCK_NOSPACE 2
#define TIME_WAIT 6
#define NEW_SYN_RECV 12		/* these two are not whole sockets */

struct ns_common { unsigned int inum; } CORE;
struct net { struct ns_common ns; } CORE;
typedef struct { struct net *net; } possible_net_t;
struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	unsigned char skc_state;
	possible_net_t skc_net;
} CORE;
struct socket { unsigned long flags; } CORE;
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	struct socket *sk_socket;
	unsigned long sk_pacing_rate;
	__u32 sk_pacing_status;
} CORE;
struct inet_sock { struct sock sk; } CORE;
struct inet_connection_sock { struct inet_sock icsk_inet; __u8 icsk_ca_state : 5; } CORE;
struct sk_buff {
	struct sock *sk;
	unsigned int len;
	unsigned char *head;
	unsigned char *data;
	unsigned int end;
	__u16 transport_header;
} CORE;
struct skb_shared_info { __u16 gso_segs; } CORE;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u64 bytes_acked;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 delivered;
	__u32 srtt_us;
	__u32 data_segs_out;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 mss_cache;
	__u32 write_seq;
	__u32 snd_wnd;
	__u64 tcp_wstamp_ns;
	__u64 tcp_clock_cache;
} CORE;

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*map_update)(void *map, const void *key, const void *value, __u64 flags) =
	(void *)BPF_FUNC_map_update_elem;
static long (*map_delete)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static __u64 (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*read_kernel)(void *to, __u32 size, const void *from) = (void *)BPF_FUNC_probe_read_kernel;
static void *(*ring_reserve)(void *ring, __u64 size, __u64 flags) = (void *)BPF_FUNC_ringbuf_reserve;
static void (*ring_submit)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;
static __u64 (*ring_query)(void *ring, __u64 what) = (void *)BPF_FUNC_ringbuf_query;

/* Any field of any kernel structure; the kernel checks the address. */
#define READ(pointer, field)                                                  \
	({                                                                    \
		__typeof__(((void)0, (pointer)->field)) value_ = 0;          \
		read_kernel(&value_, sizeof(value_), &(pointer)->field);      \
		value_;                                                       \
	})

/* A bit field's byte, and its place within (enum bpf_field_info_kind: 0 offset, 4 and 5 shifts of 64 bits). */
static inline __u8 tcp_event_state(const struct tcp_sock *tp)
{
	const void *at = (const void *)tp + __builtin_preserve_field_info(tp->inet_conn.icsk_ca_state, 0);
	__u8 byte = 0;
	__u64 value;

	read_kernel(&byte, 1, at);
	value = byte;
	value <<= __builtin_preserve_field_info(tp->inet_conn.icsk_ca_state, 4);
	return value >> __builtin_preserve_field_info(tp->inet_conn.icsk_ca_state, 5);
}

static inline int tcp_event_full(const struct sock *sk);
static inline __u8 tcp_event_cc(const struct sock *sk, __u32 *words);
#define tcp_event_get READ
#include "tcp_event.h"

static inline int tcp_event_full(const struct sock *sk)
{
	struct socket *socket = READ(sk, sk_socket);

	return socket && READ(socket, flags) >> SOCK_NOSPACE & 1;
}

/* A congestion control's get_info() can't be called from here. */
static inline __u8 tcp_event_cc(const struct sock *sk, __u32 *words)
{
	__builtin_memset(words, 0, TCP_EVENT_CC_WORDS * sizeof(*words));
	return 0;
}

/* A connection: its latest ACK, while that has not been recorded (time_ns is not 0); snd_nxt and packets as seen. */
struct connection {
	__u64 time_ns;
	__u32 prior_pipe;
	__u32 prior_una;
	__u32 flying;
	__u32 seen_nxt;
	__u32 seen_segs;
};

#define MAP(name, kind, key_type, value_type, count) \
	struct {                                     \
		int (*type)[kind];                   \
		int (*max_entries)[count];           \
		key_type *key;                       \
		value_type *value;                   \
	} name SEC(".maps")

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[RING_BYTES];
} trace_ring SEC(".maps");
MAP(trace_namespace, BPF_MAP_TYPE_ARRAY, __u32, __u32, 1);
MAP(trace_lost, BPF_MAP_TYPE_ARRAY, __u32, __u64, 1);
MAP(trace_conns, BPF_MAP_TYPE_LRU_HASH, __u64, struct connection, 65536);

/* The TCP socket if it is one of the traced namespace. */
static inline struct tcp_sock *traced(struct sock *sk)
{
	__u32 zero = 0, *wanted = map_lookup(&trace_namespace, &zero);
	unsigned char state;
	struct net *net;

	if (!sk || !wanted || !*wanted)
		return 0;
	net = READ(sk, __sk_common.skc_net.net);
	state = READ(sk, __sk_common.skc_state);
	if (READ(net, ns.inum) != *wanted || state == TIME_WAIT || state == NEW_SYN_RECV)
		return 0;
	return READ(sk, sk_protocol) == PROTOCOL_TCP ? (struct tcp_sock *)sk : 0;
}

static inline void lose(__u32 count)
{
	__u32 zero = 0;
	__u64 *lost = map_lookup(&trace_lost, &zero);

	if (lost)
		__sync_fetch_and_add(lost, count);
}

/* Reserve an event, which stands for so many packets or is another event. */
static inline struct tcp_event *reserve(const struct tcp_sock *tp, __u64 time_ns, __u32 segs)
{
	struct tcp_event *e = ring_reserve(&trace_ring, sizeof(*e), 0);

	if (!e) {
		lose(segs ? segs : 1);
		return 0;
	}
	e->time_ns = time_ns;
	e->local_port = READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_num);
	e->remote_port = __builtin_bswap16(READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_dport));
	return e;
}

static inline void submit(struct tcp_event *e)
{
	__u64 waiting = ring_query(&trace_ring, BPF_RB_AVAIL_DATA);

	ring_submit(e, waiting > RING_BYTES / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The connection, as of before `now` packets that are being seen if it is a new one. */
static inline struct connection *connection_of(const struct tcp_sock *tp, __u32 now)
{
	struct connection *c, fresh = { .seen_nxt = READ(tp, snd_nxt), .seen_segs = READ(tp, data_segs_out) - now };
	__u64 key = (__u64)tp;

	c = map_lookup(&trace_conns, &key);
	if (c)
		return c;
	map_update(&trace_conns, &key, &fresh, BPF_ANY);
	return map_lookup(&trace_conns, &key);
}

/* Count what TCP has sent, but for `now` packets that are being seen, and nobody saw. */
static inline void count_unseen(const struct tcp_sock *tp, struct connection *c, __u32 now)
{
	__u32 nxt = READ(tp, snd_nxt), segs = READ(tp, data_segs_out);
	__s32 unseen = segs - now - c->seen_segs;

	if (unseen > 0)
		lose(unseen);
	else if ((__s32)(nxt - c->seen_nxt) > 0)
		lose(1); /* a FIN alone */
	if ((__s32)(nxt - c->seen_nxt) > 0)
		c->seen_nxt = nxt;
	c->seen_segs = segs;
}

/* Record the ACK that was being processed, if there is one. */
static inline void ack_is_processed(const struct tcp_sock *tp, struct connection *c)
{
	struct tcp_event *e;

	if (c->time_ns && (c->flying || READ(tp, snd_una) != c->prior_una)) {
		e = reserve(tp, c->time_ns, 0);
		if (e) {
			tcp_event_fill(e, tp, TCP_EVENT_ACK, c->prior_pipe);
			submit(e);
		}
	}
	c->time_ns = 0;
}

SEC("tp_btf/tcp_probe") int ack_comes(__u64 *context)
{
	struct tcp_sock *tp = traced((struct sock *)context[0]);
	struct connection *c = tp ? connection_of(tp, 0) : 0;

	if (!c)
		return 0;
	count_unseen(tp, c, 0);
	ack_is_processed(tp, c);
	c->time_ns = now_ns();
	c->prior_pipe = tcp_event_pipe(tp);
	c->prior_una = READ(tp, snd_una);
	c->flying = READ(tp, packets_out) > 0;
	return 0;
}

SEC("tp_btf/net_dev_queue") int leaves(__u64 *context)
{
	struct sk_buff *skb = (struct sk_buff *)context[0];
	struct tcp_sock *tp = traced(READ(skb, sk));
	__u32 length, span, seq, segs;
	struct skb_shared_info *shared;
	unsigned char *header;
	struct connection *c;
	struct tcp_event *e;
	__u8 th[16];

	if (!tp)
		return 0;
	header = READ(skb, head) + READ(skb, transport_header);
	if (read_kernel(th, sizeof(th), header))
		return 0;
	length = READ(skb, len) - (__u32)(header - READ(skb, data)) - (th[12] >> 4) * 4;
	span = length + (th[13] & FIN);
	if (!span || th[13] & SYN)
		return 0;
	seq = (__u32)th[4] << 24 | th[5] << 16 | th[6] << 8 | th[7];
	shared = (struct skb_shared_info *)(READ(skb, head) + READ(skb, end));
	segs = READ(shared, gso_segs);
	c = connection_of(tp, length ? segs : 0);
	if (!c)
		return 0;
	count_unseen(tp, c, length ? segs : 0);
	ack_is_processed(tp, c);
	if ((__s32)(seq + span - c->seen_nxt) > 0)
		c->seen_nxt = seq + span;
	e = reserve(tp, now_ns(), segs);
	if (!e)
		return 0;
	tcp_event_sent(e, tp, seq, length, span, segs);
	submit(e);
	return 0;
}

/* Called before the state is set; tcp_enter_loss() has set the window by then. */
SEC("tp_btf/tcp_cong_state_set") int changes(__u64 *context)
{
	struct tcp_sock *tp = (__u8)context[1] == LOSS ? traced((struct sock *)context[0]) : 0;
	struct connection *c = tp ? connection_of(tp, 0) : 0;
	struct tcp_event *e;

	if (!c)
		return 0;
	count_unseen(tp, c, 0);
	ack_is_processed(tp, c);
	e = reserve(tp, now_ns(), 0);
	if (!e)
		return 0;
	tcp_event_fill(e, tp, TCP_EVENT_TIMEOUT, tcp_event_pipe(tp));
	e->state = LOSS;
	submit(e);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock") int ends(__u64 *context)
{
	struct tcp_sock *tp = traced((struct sock *)context[0]);
	struct connection *c = tp ? connection_of(tp, 0) : 0;
	__u64 key = (__u64)tp;

	if (!c)
		return 0;
	count_unseen(tp, c, 0);
	ack_is_processed(tp, c);
	map_delete(&trace_conns, &key);
	return 0;
}

static const char terms[] SEC("license") = "GPL";
