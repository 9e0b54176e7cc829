/* SPDX-License-Identifier: GPL-2.0 */
/*
 * testctl_cc.h as BPF, after the interface: struct tcp_congestion_ops as a
 * struct_ops map that libbpf loads, and a trace of arguments and decisions.
 */
#include <linux/bpf.h>

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const void *sample);
	char name[CC_NAME_BYTES];
};

/* One record an operation, while cc_trace_on[0] is not zero; cc_trace_lost counts those that did not fit. */
struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 22];
} cc_trace CC_SECTION(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	u32 *value;
} cc_trace_on CC_SECTION(".maps"), cc_trace_lost CC_SECTION(".maps");

static void *(*const cc_bpf_map_lookup_elem)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const cc_bpf_ringbuf_output)(void *ring, void *data, u64 size,
					   u64 flags) = (void *)BPF_FUNC_ringbuf_output;

static __always_inline void cc_tcp_trace(const struct sock *sk, enum cc_operation op, const struct cc_event *e,
					 const struct cc_window *before, const struct cc_window *after, u32 result)
{
	u32 zero = 0, *on = cc_bpf_map_lookup_elem(&cc_trace_on, &zero), *lost;
	struct cc_trace_record record;

	if (!on || !*on)
		return;
	record.socket = (u64)sk;
	record.operation = op;
	record.result = result;
	record.event = *e;
	record.before = *before;
	record.after = *after;
	if (!cc_bpf_ringbuf_output(&cc_trace, &record, sizeof(record), 0))
		return;
	lost = cc_bpf_map_lookup_elem(&cc_trace_lost, &zero);
	if (lost)
		__sync_fetch_and_add(lost, 1);
}

char _license[] CC_SECTION("license") = "GPL";

/* The hooks' arguments lie in an array. */
#define CC_HOOK(name_, operation_) CC_SECTION("struct_ops/" #name_ "_" #operation_)

#define CC_HOOK_cong_avoid(name_, growth_, recovery_)                                              \
	CC_HOOK(name_, cong_avoid) int name_##_tcp_cong_avoid(u64 *arguments)                      \
	{                                                                                          \
		cc_tcp_cong_avoid(&growth_, &recovery_, (struct sock *)arguments[0],               \
				  (u32)arguments[2]);                                              \
		return 0;                                                                          \
	}

#define CC_HOOK_cong_control(name_, growth_, recovery_)                                            \
	CC_HOOK(name_, cong_control) int name_##_tcp_cong_control(u64 *arguments)                  \
	{                                                                                          \
		cc_tcp_cong_control(&growth_, &recovery_, (struct sock *)arguments[0]);            \
		return 0;                                                                          \
	}

#define CC_BUILD(name_, growth_, recovery_, hook_)                                                        \
	CC_HOOK(name_, init) int name_##_tcp_init(u64 *arguments)                                         \
	{                                                                                                 \
		name_##_complete();                                                                       \
		cc_tcp_init(&growth_, &recovery_, (struct sock *)arguments[0]);                           \
		return 0;                                                                                 \
	}                                                                                                 \
	CC_HOOK(name_, ssthresh) u32 name_##_tcp_ssthresh(u64 *arguments)                                 \
	{                                                                                                 \
		return cc_tcp_ssthresh(&growth_, &recovery_, (struct sock *)arguments[0]);                \
	}                                                                                                 \
	CC_HOOK(name_, undo_cwnd) u32 name_##_tcp_undo_cwnd(u64 *arguments)                               \
	{                                                                                                 \
		return cc_tcp_undo(&growth_, &recovery_, (struct sock *)arguments[0]);                    \
	}                                                                                                 \
	CC_HOOK(name_, pkts_acked) int name_##_tcp_pkts_acked(u64 *arguments)                             \
	{                                                                                                 \
		cc_tcp_sample(&growth_, &recovery_, (struct sock *)arguments[0],                          \
			      ((struct ack_sample *)arguments[1])->rtt_us);                               \
		return 0;                                                                                 \
	}                                                                                                 \
	CC_HOOK(name_, set_state) int name_##_tcp_set_state(u64 *arguments)                               \
	{                                                                                                 \
		cc_tcp_set_state(&growth_, &recovery_, (struct sock *)arguments[0], (u8)arguments[1]);    \
		return 0;                                                                                 \
	}                                                                                                 \
	CC_HOOK(name_, cwnd_event) int name_##_tcp_cwnd_event(u64 *arguments)                             \
	{                                                                                                 \
		cc_tcp_cwnd_event(&growth_, &recovery_, (struct sock *)arguments[0], (u32)arguments[1]);  \
		return 0;                                                                                 \
	}                                                                                                 \
	CC_HOOK_##hook_(name_, growth_, recovery_)                                                        \
	CC_SECTION(".struct_ops") struct tcp_congestion_ops name_ = {                                     \
		.init = (void *)name_##_tcp_init,                                                         \
		.ssthresh = (void *)name_##_tcp_ssthresh,                                                 \
		.undo_cwnd = (void *)name_##_tcp_undo_cwnd,                                               \
		.pkts_acked = (void *)name_##_tcp_pkts_acked,                                             \
		.set_state = (void *)name_##_tcp_set_state,                                               \
		.cwnd_event = (void *)name_##_tcp_cwnd_event,                                             \
		.hook_ = (void *)name_##_tcp_##hook_,                                                     \
		.name = #name_,                                                                           \
	};
