/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between a congestion control and whatever moves the data.
 *
 * An algorithm is one file tcp_NAME.c.  It sees events and changes a window, in
 * fixed point, and calls nothing of the data path.  The same text is compiled
 * into the lab's kernel, as BPF struct_ops for a running kernel, and as a shared
 * object for tests (testctl_cc_kernel.h, testctl_cc_bpf.h, testctl_cc_host.h).
 *
 *	#include "testctl_cc.h"
 *	struct mine_state { u32 count; };
 *	static u32 mine_loss(void *state, const struct cc_event *e, const struct cc_window *w) { … }
 *	static void mine_ack(void *state, const struct cc_event *e, struct cc_window *w) { … }
 *	static const struct cc_growth mine_growth = { .loss = mine_loss, .ack = mine_ack };
 *	TESTCTL_CC(mine, mine)
 *
 * TESTCTL_CC(name, growth) needs a struct cc_growth <growth>_growth and a struct
 * <growth>_state, and leaves the window reduction to the kernel.
 * TESTCTL_CC_RECOVERY(name, growth, recovery) replaces it by the struct
 * cc_recovery <recovery>_recovery with its struct <recovery>_state.  Which
 * packets are lost is Linux's to judge, always.
 */
#ifndef TESTCTL_CC_H
#define TESTCTL_CC_H

#define CC_NAME_BYTES	  16 /* TCP_CA_NAME_MAX of Linux, the final zero included */
#define CC_KERNEL_BYTES	  104 /* ICSK_CA_PRIV_SIZE: what the kernel keeps for an algorithm */
#define CC_TRACK_BYTES	  16 /* of that: what the adapter itself remembers */
#define CC_RECOVERY_BYTES 16 /* and a recovery's state */
#define CC_GROWTH_BYTES	  (CC_KERNEL_BYTES - CC_TRACK_BYTES - CC_RECOVERY_BYTES)

#if defined(__KERNEL__)
#include "testctl_cc_kernel.h"
#elif defined(__bpf__)
#include "testctl_cc_bpf.h"
#else
#include "testctl_cc_host.h"
#endif

#define CC_SSTHRESH_INFINITE 0x7fffffffU
#define CC_MIN_SSTHRESH	     2

/* What happened.  Everything is in packets of one MSS unless it says otherwise. */
struct cc_event {
	u64 now_us; /* the connection's clock at this ACK */
	u32 acked; /* newly delivered by this ACK: acknowledged or SACKed */
	u32 lost; /* newly judged lost */
	u32 delivered; /* all that was ever delivered */
	u32 pipe; /* in the network by Linux's estimate, after this ACK */
	u32 flight; /* snd.nxt - snd.una, in packets */
	u32 sent; /* sent since this recovery began, new data and retransmissions */
	u32 rtt_us; /* this ACK's sample; 0: it gave none */
	u32 srtt_us;
	u32 mss_bytes;
	u32 prior_cwnd; /* the window before the last reduction */
	u8 advanced; /* snd.una moved */
	u8 limited; /* the window, not the application, held data back */
	u8 pad[6];
};

/* What is decided. */
struct cc_window {
	u32 cwnd; /* packets */
	u32 ssthresh; /* packets; CC_SSTHRESH_INFINITE: none yet */
	u64 pacing_Bps; /* bytes/s; 0: as Linux paces.  Needs TESTCTL_CC_RECOVERY */
};

/* An operation that ran: its arguments, and what was decided. */
struct cc_trace_record {
	u64 socket;
	u32 operation;
	u32 result;
	struct cc_event event;
	struct cc_window before;
	struct cc_window after;
};

/* How the window grows and how far it falls.  Required: ack and loss. */
struct cc_growth {
	/* The connection is established; the state is all zeros. */
	void (*init)(void *state, const struct cc_event *e, struct cc_window *w);
	/* An RTT sample (e->rtt_us), before the ack or loss of the same ACK. */
	void (*sample)(void *state, const struct cc_event *e);
	/* New data was acknowledged and no reduction is under way: grow w->cwnd. */
	void (*ack)(void *state, const struct cc_event *e, struct cc_window *w);
	/* A loss, once a window: the new ssthresh. */
	u32 (*loss)(void *state, const struct cc_event *e, const struct cc_window *w);
	/* The same for a congestion mark (ECE).  Without it: loss. */
	u32 (*ecn)(void *state, const struct cc_event *e, const struct cc_window *w);
	/* The retransmission timer fired; loss has chosen ssthresh, cwnd starts again. */
	void (*timeout)(void *state, const struct cc_event *e, const struct cc_window *w);
	/* Data is sent after the connection had been idle. */
	void (*restart)(void *state, const struct cc_event *e);
	/* The last reduction was in error and is taken back. */
	void (*undo)(void *state, const struct cc_event *e, const struct cc_window *w);
};

/*
 * What is sent between a loss (or mark) and its repair: w->cwnd on each ACK, the
 * data path sends while pipe < cwnd.  Required: enter and ack.
 */
struct cc_recovery {
	/* w->ssthresh has been chosen by the growth. */
	void (*enter)(void *state, const struct cc_event *e, struct cc_window *w);
	void (*ack)(void *state, const struct cc_event *e, struct cc_window *w);
	/* Repaired; not called after an undo or a timeout. */
	void (*exit)(void *state, const struct cc_event *e, struct cc_window *w);
};

enum cc_operation {
	CC_INIT,
	CC_SAMPLE,
	CC_ACK,
	CC_LOSS,
	CC_ECN,
	CC_TIMEOUT,
	CC_RESTART,
	CC_UNDO,
	CC_RECOVERY_ENTER,
	CC_RECOVERY_ACK,
	CC_RECOVERY_EXIT,
	CC_OPERATIONS,
};

/* What an adapter remembers of a connection between two events. */
struct cc_track {
	u32 una; /* snd.una at the last ACK */
	u32 delivered;
	u32 lost;
	u32 rtt_us; /* the sample of the ACK that is being processed */
};

/* The kernel's private memory of a connection. */
struct cc_private {
	struct cc_track track;
	u32 recovery[CC_RECOVERY_BYTES / 4];
	u64 growth[CC_GROWTH_BYTES / 8];
};

/* The kernel's own window reduction. */
struct cc_kernel_state {
	u32 none;
};
static const struct cc_recovery cc_kernel_recovery __maybe_unused = {};

/* Never defined: a call that is left after optimisation stops the build with these words. */
void cc_growth_needs_ack(void) __attribute__((error("a congestion control needs the operation `ack`")));
void cc_growth_needs_loss(void) __attribute__((error("a congestion control needs the operation `loss`")));
void cc_recovery_needs_enter(void) __attribute__((error("a loss recovery needs the operation `enter`")));
void cc_recovery_needs_ack(void) __attribute__((error("a loss recovery needs the operation `ack`")));

static __always_inline u32 cc_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

static __always_inline u32 cc_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* Slow start up to ssthresh; returns what is left of acked for congestion avoidance. */
static __always_inline u32 cc_slow_start(const struct cc_event *e, struct cc_window *w)
{
	u32 room, used;

	if (w->cwnd >= w->ssthresh)
		return e->acked;
	room = w->ssthresh - w->cwnd;
	used = cc_min(e->acked, room);
	w->cwnd += used;
	return e->acked - used;
}

/* Run one operation: the only way by which an adapter calls an algorithm. */
static __always_inline u32 cc_run(const struct cc_growth *g, const struct cc_recovery *r, struct cc_private *p,
				  enum cc_operation op, const struct cc_event *e, struct cc_window *w)
{
	void *growth = p->growth, *recovery = p->recovery;

	if (op == CC_INIT && g->init)
		g->init(growth, e, w);
	else if (op == CC_SAMPLE && g->sample)
		g->sample(growth, e);
	else if (op == CC_ACK)
		g->ack(growth, e, w);
	else if (op == CC_ECN && g->ecn)
		return cc_max(g->ecn(growth, e, w), CC_MIN_SSTHRESH);
	else if (op == CC_LOSS || op == CC_ECN)
		return cc_max(g->loss(growth, e, w), CC_MIN_SSTHRESH);
	else if (op == CC_TIMEOUT && g->timeout)
		g->timeout(growth, e, w);
	else if (op == CC_RESTART && g->restart)
		g->restart(growth, e);
	else if (op == CC_UNDO && g->undo)
		g->undo(growth, e, w);
	else if (op == CC_RECOVERY_ENTER && r->enter)
		r->enter(recovery, e, w);
	else if (op == CC_RECOVERY_ACK && r->ack)
		r->ack(recovery, e, w);
	else if (op == CC_RECOVERY_EXIT && r->exit)
		r->exit(recovery, e, w);
	return 0;
}

/* Refuse what is incomplete or too large while it is compiled. */
#define CC_CHECK(name_, growth_, recovery_)                                                                   \
	_Static_assert(sizeof(#name_) <= CC_NAME_BYTES,                                                       \
		       "congestion control " #name_ ": Linux wants a name of at most 15 characters");         \
	_Static_assert(sizeof(struct growth_##_state) <= CC_GROWTH_BYTES,                                     \
		       "congestion control " #name_ ": struct " #growth_                                      \
		       "_state is larger than the 72 bytes that the kernel leaves (ICSK_CA_PRIV_SIZE)");      \
	_Static_assert(sizeof(struct recovery_##_state) <= CC_RECOVERY_BYTES,                                 \
		       "congestion control " #name_ ": struct " #recovery_                                    \
		       "_state is larger than the 16 bytes that a loss recovery has");                        \
	static __always_inline void name_##_complete(void)                                                    \
	{                                                                                                     \
		if (!growth_##_growth.ack)                                                                    \
			cc_growth_needs_ack();                                                                \
		if (!growth_##_growth.loss)                                                                   \
			cc_growth_needs_loss();                                                               \
		if (recovery_##_recovery.ack && !recovery_##_recovery.enter)                                  \
			cc_recovery_needs_enter();                                                            \
		if (recovery_##_recovery.enter && !recovery_##_recovery.ack)                                  \
			cc_recovery_needs_ack();                                                              \
	}

#define TESTCTL_CC(name_, growth_)                   \
	CC_CHECK(name_, growth_, cc_kernel)          \
	CC_BUILD(name_, growth_##_growth, cc_kernel_recovery, cong_avoid)

#define TESTCTL_CC_RECOVERY(name_, growth_, recovery_) \
	CC_CHECK(name_, growth_, recovery_)            \
	CC_BUILD(name_, growth_##_growth, recovery_##_recovery, cong_control)

#if defined(__KERNEL__) || defined(__bpf__)
#include "testctl_cc_tcp.h"
#endif
#if defined(__KERNEL__)
#include "testctl_cc_module.h"
#elif defined(__bpf__)
#include "testctl_cc_struct_ops.h"
#else
#include "testctl_cc_shared.h"
#endif

#endif
