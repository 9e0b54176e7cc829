# SPDX-License-Identifier: Apache-2.0
"""The lab kernel's BPF JIT, built for user space, against what the instructions mean."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import pytest

from tests.bpf_model import Machine, pack, program

ROOT = Path(__file__).parents[1]
CONTEXT_BYTES = 256
KERNEL = """
#include <linux/types.h>
#include_next <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
typedef __u8 u8; typedef __u16 u16; typedef __u32 u32; typedef __u64 u64; typedef __s16 s16; typedef __s32 s32;
#define CONFIG_X86_64 1
#define BPF_REG_AX 11
#define BPF_CALL_ARGS 0xe0
struct bpf_prog {
	u32 len;
	unsigned int (*bpf_func)(const void *, const struct bpf_insn *);
	struct bpf_insn insnsi[];
};
static u64 __bpf_call_base(u64 a, u64 b, u64 c, u64 d, u64 e) { return a * 3 + b * 5 + c * 7 + d * 11 + e * 13; }
static void *vzalloc(size_t bytes) { return calloc(1, bytes); }
static void *vmalloc(size_t bytes) { return mmap(0, bytes, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void vfree(void *at) { free(at); }
#define array_size(a, b) ((size_t)(a) * (b))
"""
HARNESS = """
#include "lab_bpf_jit.c"
struct bpf_prog *make(const struct bpf_insn *insns, u32 count)
{
	struct bpf_prog *prog = calloc(1, sizeof(*prog) + count * sizeof(*insns));

	prog->len = count;
	__builtin_memcpy(prog->insnsi, insns, count * sizeof(*insns));
	return bpf_int_jit_compile(prog);
}
int compiled(struct bpf_prog *prog) { return prog->bpf_func != 0; }
u64 run(struct bpf_prog *prog, void *context) { return ((u64 (*)(void *))prog->bpf_func)(context); }
"""


@pytest.fixture(scope="module")
def jit(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    where = tmp_path_factory.mktemp("jit")
    (where / "linux").mkdir()
    for name, text in (("bpf.h", ""), ("filter.h", KERNEL), ("vmalloc.h", "")):
        (where / "linux" / name).write_text(text)
    (where / "harness.c").write_text(HARNESS)
    argv = ["cc", "-O2", "-Wall", "-Wno-unused-function", f"-I{where}", f"-I{ROOT / 'lab' / 'kernel'}"]
    subprocess.run([*argv, "-shared", "-fPIC", "-o", where / "jit.so", where / "harness.c"], check=True)
    library = ctypes.CDLL(str(where / "jit.so"))
    library.make.restype, library.run.restype = ctypes.c_void_p, ctypes.c_uint64
    return library


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(jit: ctypes.CDLL, seed: int) -> None:
    rng = random.Random(seed)
    context = (ctypes.c_uint8 * CONTEXT_BYTES)()
    for nth in range(150):
        code, before = program(rng), rng.randbytes(CONTEXT_BYTES)
        expected = bytearray(before)
        want = Machine(code, expected, ctypes.addressof(context)).run()
        ctypes.memmove(context, before, CONTEXT_BYTES)
        made = ctypes.c_void_p(jit.make(code, len(code) // 8))
        assert jit.compiled(made), nth
        assert (jit.run(made, context), bytes(context)) == (want, bytes(expected)), nth


@pytest.mark.parametrize(
    "code",
    [pack(0xBF, 1, 2, 8), pack(0xD7, 1, imm=32), pack(0x81, 1, 2), pack(0x06, 0), pack(0xF5), pack(0x85, src=2),
     pack(0xDB, 1, 2, 0, 0xF1)],
    ids=["movsx", "bswap", "ldxsx", "gotol", "tail call", "kernel function", "compare and exchange"],
)  # fmt: skip
def test_what_it_does_not_know_is_left_to_the_interpreter(jit: ctypes.CDLL, code: bytes) -> None:
    whole = code + pack(0x95)
    assert not jit.compiled(ctypes.c_void_p(jit.make(whole, len(whole) // 8)))
