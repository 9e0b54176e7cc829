/* SPDX-License-Identifier: GPL-2.0 */
/*
 * testctl_cc.h in a shared object for tests, after the interface: the algorithm
 * as two functions that ctypes can call.
 */
#define CC_BUILD(name_, growth_, recovery_, hook_)                                                        \
	const char cc_host_name[] = #name_;                                                              \
	const u32 cc_host_bytes[] = { sizeof(struct cc_event), sizeof(struct cc_window),                 \
				      sizeof(struct cc_private), CC_OPERATIONS };                        \
	u32 cc_host_run(struct cc_private *private, u32 operation, const struct cc_event *event,         \
			struct cc_window *window);                                                       \
	u32 cc_host_run(struct cc_private *private, u32 operation, const struct cc_event *event,         \
			struct cc_window *window)                                                        \
	{                                                                                                \
		name_##_complete();                                                                      \
		return cc_run(&growth_, &recovery_, private, operation, event, window);                  \
	}
