/* SPDX-License-Identifier: GPL-2.0 */
/* testctl_cc.h in a shared object for tests, before the interface: types. */
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __maybe_unused __attribute__((unused))

static __always_inline u64 cc_div(u64 a, u64 b)
{
	return a / b;
}
