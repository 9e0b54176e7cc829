/* SPDX-License-Identifier: GPL-2.0 */
/* testctl_cc.h in the lab's kernel, after the interface: struct tcp_congestion_ops. */

/* From 6.10 on cong_control has two arguments more; Kbuild looks which kind this tree's is. */
#ifdef TESTCTL_CONG_CONTROL_HAS_FLAGS
#define CC_CONTROL_ARGUMENTS struct sock *sk, u32 ack, int flag, const struct rate_sample *rs
#else
#define CC_CONTROL_ARGUMENTS struct sock *sk, const struct rate_sample *rs
#endif

extern u32 cc_trace_room; /* lab_cc_trace.c; 0: nobody traces */
void cc_trace_add(const struct cc_trace_record *record);

static __always_inline void cc_tcp_trace(const struct sock *sk, enum cc_operation op, const struct cc_event *e,
					 const struct cc_window *before, const struct cc_window *after, u32 result)
{
	struct cc_trace_record record;

	if (likely(!cc_trace_room))
		return;
	record.socket = (unsigned long)sk;
	record.operation = op;
	record.result = result;
	record.event = *e;
	record.before = *before;
	record.after = *after;
	cc_trace_add(&record);
}

#define CC_HOOK_cong_avoid(name_, growth_, recovery_)                                     \
	static void name_##_tcp_cong_avoid(struct sock *sk, u32 ack, u32 acked)           \
	{                                                                                 \
		cc_tcp_cong_avoid(&growth_, &recovery_, sk, acked);                       \
	}

#define CC_HOOK_cong_control(name_, growth_, recovery_)                                   \
	static void name_##_tcp_cong_control(CC_CONTROL_ARGUMENTS)                        \
	{                                                                                 \
		cc_tcp_cong_control(&growth_, &recovery_, sk);                            \
	}

#define CC_BUILD(name_, growth_, recovery_, hook_)                                                   \
	static void name_##_tcp_init(struct sock *sk)                                                \
	{                                                                                            \
		name_##_complete();                                                                  \
		cc_tcp_init(&growth_, &recovery_, sk);                                               \
	}                                                                                            \
	static u32 name_##_tcp_ssthresh(struct sock *sk)                                             \
	{                                                                                            \
		return cc_tcp_ssthresh(&growth_, &recovery_, sk);                                    \
	}                                                                                            \
	static u32 name_##_tcp_undo_cwnd(struct sock *sk)                                            \
	{                                                                                            \
		return cc_tcp_undo(&growth_, &recovery_, sk);                                        \
	}                                                                                            \
	static void name_##_tcp_pkts_acked(struct sock *sk, const struct ack_sample *sample)         \
	{                                                                                            \
		cc_tcp_sample(&growth_, &recovery_, sk, sample->rtt_us);                             \
	}                                                                                            \
	static void name_##_tcp_set_state(struct sock *sk, u8 state)                                 \
	{                                                                                            \
		cc_tcp_set_state(&growth_, &recovery_, sk, state);                                   \
	}                                                                                            \
	static void name_##_tcp_cwnd_event(struct sock *sk, enum tcp_ca_event event)                 \
	{                                                                                            \
		cc_tcp_cwnd_event(&growth_, &recovery_, sk, event);                                  \
	}                                                                                            \
	CC_HOOK_##hook_(name_, growth_, recovery_)                                                   \
	static struct tcp_congestion_ops name_##_tcp_ops __read_mostly = {                           \
		.init = name_##_tcp_init,                                                            \
		.ssthresh = name_##_tcp_ssthresh,                                                    \
		.undo_cwnd = name_##_tcp_undo_cwnd,                                                  \
		.pkts_acked = name_##_tcp_pkts_acked,                                                \
		.set_state = name_##_tcp_set_state,                                                  \
		.cwnd_event = name_##_tcp_cwnd_event,                                                \
		.hook_ = name_##_tcp_##hook_,                                                        \
		.name = #name_,                                                                      \
		.owner = THIS_MODULE,                                                                \
	};                                                                                           \
	static int __init name_##_tcp_register(void)                                                 \
	{                                                                                            \
		BUILD_BUG_ON(sizeof(struct cc_private) > ICSK_CA_PRIV_SIZE);                         \
		return tcp_register_congestion_control(&name_##_tcp_ops);                            \
	}                                                                                            \
	static void __exit name_##_tcp_unregister(void)                                              \
	{                                                                                            \
		tcp_unregister_congestion_control(&name_##_tcp_ops);                                 \
	}                                                                                            \
	module_init(name_##_tcp_register);                                                           \
	module_exit(name_##_tcp_unregister);                                                         \
	MODULE_DESCRIPTION("testctl congestion control " #name_);                                    \
	MODULE_LICENSE("GPL");
