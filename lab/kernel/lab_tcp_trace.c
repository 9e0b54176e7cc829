// SPDX-License-Identifier: GPL-2.0
/*
 * TCP's internals at every ACK, transmission and timeout, for the virtual-time lab.
 *
 * The linker sends here (--wrap) what TCP's files call of each other: an ACK is
 * processed in tcp_rcv_established() or tcp_rcv_state_process(), a segment
 * leaves by ip_queue_xmit() or inet6_csk_xmit(), a timer finds losses by
 * tcp_enter_loss().  What an ACK did is read when it has been processed, and
 * before anything is sent on it: at the first transmission within, or at the
 * end.  An ACK that comes when nothing is in flight is not recorded.  What limits
 * the sender is decided once more for the last event of an ACK, after TCP has sent.
 *
 * The time is the one that TCP itself has read for the event (tcp_clock_cache):
 * reading the clock again would move it, and the packets with it.
 *
 * /proc/net/testctl_tcp_trace, one in each network namespace: write 1 to empty
 * it and begin, 0 to end; read struct trace_head, then struct tcp_event.  It
 * holds MOST_CHUNKS chunks, which are allocated as they fill; an event that
 * does not fit is counted in `lost`.
 */
#include <linux/bottom_half.h>
#include <linux/gfp.h>
#include <linux/inet_diag.h>
#include <linux/init.h>
#include <linux/net.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/inet6_connection_sock.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#define tcp_event_get(pointer, field) ((pointer)->field)
#define tcp_event_state(tp) (inet_csk((const struct sock *)(tp))->icsk_ca_state)
static bool tcp_event_full(const struct sock *sk);
static u8 tcp_event_cc(const struct sock *sk, u32 *words);
#include "lab_ect1.h"
#include "tcp_event.h"

#define FILE_NAME "testctl_tcp_trace"
#define CHUNK_ORDER 4
#define CHUNK_EVENTS ((u32)((PAGE_SIZE << CHUNK_ORDER) / sizeof(struct tcp_event)))
#define MOST_CHUNKS 1792

struct trace_head {
	char magic[4];		/* "TGE1" */
	u32 layout;		/* TCP_EVENT_LAYOUT */
	u32 event_bytes;
	u32 spare;
	u64 events;
	u64 lost;
};

struct trace {
	bool on;
	u64 events;
	u64 lost;
	struct tcp_event **chunks;	/* (owned) MOST_CHUNKS of them */
};

/* An ACK that is being processed.  They nest: a softirq may come between. */
struct processing {
	const struct sock *sk;	/* NULL: nothing is to be recorded */
	struct processing *outer;
	const struct sock *turn;	/* whose transmissions belong to it; NULL: nobody's */
	struct tcp_event *last;	/* the latest of its events; NULL: none */
	u32 prior_pipe;
	u32 prior_una;
	bool flying;
};

static unsigned int trace_id;
static struct processing *innermost;

static bool tcp_event_full(const struct sock *sk)
{
	return sk->sk_socket && test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/* What `ss -i` shows of it: get_info() only reads, although its socket is not const. */
static u8 tcp_event_cc(const struct sock *sk, u32 *words)
{
	const struct tcp_congestion_ops *ca = inet_csk(sk)->icsk_ca_ops;
	union tcp_cc_info info = { };
	int kind = 0;

	BUILD_BUG_ON(sizeof(info) < TCP_EVENT_CC_WORDS * sizeof(*words));
	if (ca && ca->get_info)
		ca->get_info((struct sock *)sk, ~0U, &kind, &info);
	memcpy(words, &info, TCP_EVENT_CC_WORDS * sizeof(*words));
	return kind;
}

static struct trace *trace_of(const struct sock *sk)
{
	struct trace *t = net_generic(sock_net(sk), trace_id);

	return t->on && sk->sk_protocol == IPPROTO_TCP ? t : NULL;
}

/* Space for the next event, its time and ports filled in; NULL: lost. */
static struct tcp_event *reserve(struct trace *t, const struct sock *sk)
{
	u32 chunk = div_u64(t->events, CHUNK_EVENTS), at = t->events - (u64)chunk * CHUNK_EVENTS;
	struct tcp_event *e;

	if (chunk < MOST_CHUNKS && !t->chunks[chunk])
		t->chunks[chunk] = (void *)__get_free_pages(GFP_NOWAIT | __GFP_NOWARN, CHUNK_ORDER);
	if (chunk >= MOST_CHUNKS || !t->chunks[chunk]) {
		t->lost++;
		return NULL;
	}
	t->events++;
	e = &t->chunks[chunk][at];
	e->time_ns = tcp_sk(sk)->tcp_clock_cache;
	e->local_port = inet_sk(sk)->inet_num;
	e->remote_port = ntohs(inet_sk(sk)->inet_dport);
	return e;
}

static void ack_begins(struct processing *p, const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	p->sk = trace_of(sk) && tcp_hdr(skb)->ack && sk->sk_state != TCP_LISTEN ? sk : NULL;
	p->turn = p->sk;
	p->last = NULL;
	p->prior_pipe = tcp_event_pipe(tp);
	p->prior_una = tp->snd_una;
	p->flying = tp->packets_out > 0;
	p->outer = innermost;
	innermost = p;
}

static void ack_is_processed(struct processing *p)
{
	const struct sock *sk = p->sk;
	struct trace *t = sk ? trace_of(sk) : NULL;
	struct tcp_event *e;

	p->sk = NULL;
	if (!t || !(p->flying || tcp_sk(sk)->snd_una != p->prior_una))
		return;
	e = reserve(t, sk);
	if (e)
		tcp_event_fill(e, tcp_sk(sk), TCP_EVENT_ACK, p->prior_pipe);
	p->last = e;
}

/*
 * TCP has sent what it wanted to on an ACK.  If nothing kept it from sending more,
 * it defers (tcp_tso_should_defer()), which the kernel counts as limited by the
 * smaller one of the windows; or it waits for the device (tcp_small_queue_check()).
 */
static void turn_ends(struct tcp_event *e, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 space = (tp->snd_cwnd - e->pipe) * tp->mss_cache;

	if (e->limit != TCP_LIMIT_NOTHING)
		return;
	e->limit = tcp_event_limit(e, tp, tp->snd_nxt, 0);
	if (e->limit == TCP_LIMIT_NOTHING && tp->lost_out <= tp->retrans_out && !(sk->sk_tsq_flags & TSQF_THROTTLED))
		e->limit = space < tcp_wnd_end(tp) - tp->snd_nxt ? TCP_LIMIT_CWND : TCP_LIMIT_RECEIVER_WINDOW;
}

static void ack_ends(struct processing *p)
{
	ack_is_processed(p);
	innermost = p->outer;
	if (p->last && trace_of(p->turn))
		turn_ends(p->last, p->turn);
}

static void sends(const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcphdr *th = tcp_hdr(skb);
	struct trace *t = trace_of(sk);
	struct processing *p;
	struct tcp_event *e;
	u32 length, span;

	if (!t)
		return;
	length = skb->len - th->doff * 4;
	span = length + th->fin;
	if (!span || th->syn)
		return;
	for (p = innermost; p; p = p->outer)
		if (p->sk == sk)
			ack_is_processed(p);
	e = reserve(t, sk);
	if (!e)
		return;
	tcp_event_sent(e, tcp_sk(sk), ntohl(th->seq), length, span, skb_shinfo(skb)->gso_segs);
	for (p = innermost; p; p = p->outer)
		if (p->turn == sk)
			p->last = e;
}

void __real_tcp_rcv_established(struct sock *sk, struct sk_buff *skb);
void __wrap_tcp_rcv_established(struct sock *sk, struct sk_buff *skb);
void __wrap_tcp_rcv_established(struct sock *sk, struct sk_buff *skb)
{
	struct processing p;

	ack_begins(&p, sk, skb);
	__real_tcp_rcv_established(sk, skb);
	ack_ends(&p);
}

/* It returns an int or, later, an enum: both come in the same register. */
int __real_tcp_rcv_state_process(struct sock *sk, struct sk_buff *skb);
int __wrap_tcp_rcv_state_process(struct sock *sk, struct sk_buff *skb);
int __wrap_tcp_rcv_state_process(struct sock *sk, struct sk_buff *skb)
{
	struct processing p;
	int result;

	ack_begins(&p, sk, skb);
	result = __real_tcp_rcv_state_process(sk, skb);
	ack_ends(&p);
	return result;
}

int __real_ip_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);
int __wrap_ip_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);
int __wrap_ip_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	u8 field = inet_sk(sk)->tos;
	int result;

	sends(sk, skb);
	inet_sk(sk)->tos = lab_ect1(sk, field);
	result = __real_ip_queue_xmit(sk, skb, fl);
	inet_sk(sk)->tos = field;
	return result;
}

int __real_inet6_csk_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);
int __wrap_inet6_csk_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);
int __wrap_inet6_csk_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	u8 field = inet6_sk(sk)->tclass;
	int result;

	sends(sk, skb);
	inet6_sk(sk)->tclass = lab_ect1(sk, field);
	result = __real_inet6_csk_xmit(sk, skb, fl);
	inet6_sk(sk)->tclass = field;
	return result;
}

void __real_tcp_enter_loss(struct sock *sk);
void __wrap_tcp_enter_loss(struct sock *sk);
void __wrap_tcp_enter_loss(struct sock *sk)
{
	u32 prior_pipe = tcp_event_pipe(tcp_sk(sk));
	struct trace *t = trace_of(sk);
	struct tcp_event *e;

	__real_tcp_enter_loss(sk);
	e = t ? reserve(t, sk) : NULL;
	if (e)
		tcp_event_fill(e, tcp_sk(sk), TCP_EVENT_TIMEOUT, prior_pipe);
}

/* Position 0 is the head, n > 0 chunk n - 1. */
static void *place(struct seq_file *m, loff_t *pos)
{
	struct trace *t = net_generic(seq_file_net(m), trace_id);

	return *pos <= div_u64(t->events + CHUNK_EVENTS - 1, CHUNK_EVENTS) ? pos : NULL;
}

static void *trace_start(struct seq_file *m, loff_t *pos)
{
	return place(m, pos);
}

static void *trace_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return place(m, pos);
}

static void trace_stop(struct seq_file *m, void *v)
{
}

static int trace_show(struct seq_file *m, void *v)
{
	struct trace *t = net_generic(seq_file_net(m), trace_id);
	u64 first = *(loff_t *)v - 1;
	struct trace_head head = {
		.magic = "TGE1",
		.layout = TCP_EVENT_LAYOUT,
		.event_bytes = sizeof(struct tcp_event),
		.events = t->events,
		.lost = t->lost,
	};

	if (!*(loff_t *)v)
		return seq_write(m, &head, sizeof(head));
	seq_write(m, t->chunks[first],
		  min_t(u64, t->events - first * CHUNK_EVENTS, CHUNK_EVENTS) * sizeof(struct tcp_event));
	return 0;
}

static const struct seq_operations trace_operations = {
	.start = trace_start,
	.next = trace_next,
	.stop = trace_stop,
	.show = trace_show,
};

static void release(struct trace *t)
{
	u32 chunk;

	for (chunk = 0; t->chunks && chunk < MOST_CHUNKS; chunk++)
		free_pages((unsigned long)t->chunks[chunk], CHUNK_ORDER);
	kfree(t->chunks);
	*t = (struct trace){ };
}

static int trace_write(struct file *file, char *text, size_t length)
{
	struct trace *t = net_generic(seq_file_net(file->private_data), trace_id);
	bool on = text[0] == '1';
	int error = 0;

	if (!on && text[0] != '0')
		return -EINVAL;
	local_bh_disable();	/* UML has one processor: this is the lock */
	t->on = false;
	if (on) {
		release(t);
		t->chunks = kcalloc(MOST_CHUNKS, sizeof(*t->chunks), GFP_ATOMIC);
		t->on = t->chunks;
		error = t->chunks ? 0 : -ENOMEM;
	}
	local_bh_enable();
	return error;
}

static int __net_init trace_net_init(struct net *net)
{
	return proc_create_net_data_write(FILE_NAME, 0600, net->proc_net, &trace_operations, trace_write,
					  sizeof(struct seq_net_private), NULL) ? 0 : -ENOMEM;
}

static void __net_exit trace_net_exit(struct net *net)
{
	remove_proc_entry(FILE_NAME, net->proc_net);
	release(net_generic(net, trace_id));
}

static struct pernet_operations trace_net_operations = {
	.init = trace_net_init,
	.exit = trace_net_exit,
	.id = &trace_id,
	.size = sizeof(struct trace),
};

static int __init tcp_trace_init(void)
{
	BUILD_BUG_ON(sizeof(struct tcp_event) != 96);
	return register_pernet_subsys(&trace_net_operations);
}
fs_initcall(tcp_trace_init);
