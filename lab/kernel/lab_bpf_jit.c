// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs as native code in the lab: the tree's x86-64 JIT can't be built for arch/um, whose
 * kernel is nevertheless x86-64 code in pages that may be executed.
 *
 * core.c calls bpf_int_jit_compile() whatever the configuration (in newer trees by an edit); this one
 * replaces its weak default and leaves the interpreter to any program with an instruction it does not know.  The
 * verifier takes the program for an interpreted one, so nothing is inlined for the JIT, and calls
 * between functions come as BPF_CALL_ARGS.  Code is never freed: a lab is short.
 *
 * One instruction at a time, jumps always 32 bits wide, so that lengths do not depend on targets:
 * one pass measures, the second writes.  Registers as in arch/x86/net: R0 to R5 are those of the C
 * calling convention, R6 to R9 are saved by the callee, R10 is rbp.  r11 is free.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/vmalloc.h>

#ifdef CONFIG_X86_64

/* How far the function lies that a BPF_CALL_ARGS calls; the other field is the interpreter for its stack. */
#ifdef TESTCTL_CALLEE_IS_IMM
#define CALLEE(i) ((i)->imm)
#else
#define CALLEE(i) ((i)->off)
#endif

enum { X_AX, X_CX, X_DX, X_BX, X_SP, X_BP, X_SI, X_DI, X_8, X_9, X_10, X_11, X_12, X_13, X_14, X_15 };

static const u8 native[] = {
	[BPF_REG_0] = X_AX, [BPF_REG_1] = X_DI, [BPF_REG_2] = X_SI, [BPF_REG_3] = X_DX,
	[BPF_REG_4] = X_CX, [BPF_REG_5] = X_8,  [BPF_REG_6] = X_BX, [BPF_REG_7] = X_13,
	[BPF_REG_8] = X_14, [BPF_REG_9] = X_15, [BPF_REG_10] = X_BP, [BPF_REG_AX] = X_10,
};

/* x86's condition codes by BPF's comparisons */
static const u8 conditions[16] = {
	[BPF_JEQ >> 4] = 0x4,  [BPF_JNE >> 4] = 0x5,  [BPF_JSET >> 4] = 0x5,
	[BPF_JGT >> 4] = 0x7,  [BPF_JGE >> 4] = 0x3,  [BPF_JLT >> 4] = 0x2,  [BPF_JLE >> 4] = 0x6,
	[BPF_JSGT >> 4] = 0xf, [BPF_JSGE >> 4] = 0xd, [BPF_JSLT >> 4] = 0xc, [BPF_JSLE >> 4] = 0xe,
};

/* at: where each instruction begins; entry: where a function that begins there does, or 0 */
struct jit {
	const struct bpf_insn *insns;
	u32 count;
	u32 stack;
	u32 *at, *entry;
	u8 *out;			/* NULL: measure */
	u32 length;
};

static void byte(struct jit *j, u8 value)
{
	if (j->out)
		j->out[j->length] = value;
	j->length++;
}

static void number(struct jit *j, u64 value, int bytes)
{
	while (bytes--) {
		byte(j, value);
		value >>= 8;
	}
}

static void rex(struct jit *j, bool wide, u8 reg, u8 rm)
{
	byte(j, 0x40 | wide << 3 | (reg >> 3) << 2 | rm >> 3);
}

/* op reg, rm: two registers */
static void pair(struct jit *j, bool wide, u8 op, u8 reg, u8 rm)
{
	rex(j, wide, reg, rm);
	byte(j, op);
	byte(j, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

static void move(struct jit *j, bool wide, u8 to, u8 from)
{
	pair(j, wide, 0x89, from, to);
}

/* The operand [base + offset]; no base is rsp or r12. */
static void memory(struct jit *j, u8 reg, u8 base, s16 offset)
{
	byte(j, 0x80 | (reg & 7) << 3 | (base & 7));
	number(j, (s32)offset, 4);
}

static void push(struct jit *j, u8 reg)
{
	rex(j, false, 0, reg);
	byte(j, 0x50 | (reg & 7));
}

static void pop(struct jit *j, u8 reg)
{
	rex(j, false, 0, reg);
	byte(j, 0x58 | (reg & 7));
}

static void begin(struct jit *j)
{
	push(j, X_BP);
	move(j, true, X_BP, X_SP);
	pair(j, true, 0x81, 5, X_SP);		/* sub */
	number(j, j->stack, 4);
	push(j, X_BX);
	push(j, X_13);
	push(j, X_14);
	push(j, X_15);
}

static void end(struct jit *j)
{
	pop(j, X_15);
	pop(j, X_14);
	pop(j, X_13);
	pop(j, X_BX);
	byte(j, 0xc9);				/* leave */
	byte(j, 0xc3);				/* ret */
}

static void relative(struct jit *j, u32 target)
{
	number(j, target - (j->length + 4), 4);
}

static void call(struct jit *j, s32 helper)
{
	rex(j, true, 0, X_AX);
	byte(j, 0xb8);
	number(j, (u64)(unsigned long)((void *)__bpf_call_base + helper), 8);
	byte(j, 0xff);
	byte(j, 0xd0);
}

static void divide(struct jit *j, bool wide, bool rest, u8 dst, const struct bpf_insn *i)
{
	if (BPF_SRC(i->code) == BPF_X) {
		move(j, wide, X_11, native[i->src_reg]);
	} else {
		pair(j, true, 0xc7, 0, X_11);
		number(j, i->imm, 4);
	}
	if (dst != X_AX)
		push(j, X_AX);
	if (dst != X_DX)
		push(j, X_DX);
	move(j, wide, X_AX, dst);
	pair(j, false, 0x31, X_DX, X_DX);
	pair(j, wide, 0xf7, 6, X_11);
	move(j, wide, dst, rest ? X_DX : X_AX);
	if (dst != X_DX)
		pop(j, X_DX);
	if (dst != X_AX)
		pop(j, X_AX);
}

/* The count has to lie in cl, which is R4's. */
static void shift(struct jit *j, bool wide, u8 how, u8 dst, const struct bpf_insn *i)
{
	u8 src = native[i->src_reg];

	if (BPF_SRC(i->code) == BPF_K) {
		pair(j, wide, 0xc1, how, dst);
		byte(j, i->imm);
	} else if (dst == X_CX) {
		move(j, true, X_11, X_CX);
		move(j, true, X_CX, src);
		pair(j, wide, 0xd3, how, X_11);
		move(j, true, X_CX, X_11);
	} else if (src == X_CX) {
		pair(j, wide, 0xd3, how, dst);
	} else {
		move(j, true, X_11, X_CX);
		move(j, true, X_CX, src);
		pair(j, wide, 0xd3, how, dst);
		move(j, true, X_CX, X_11);
	}
}

static bool reorder(struct jit *j, u8 dst, const struct bpf_insn *i)
{
	bool swap = BPF_SRC(i->code) == BPF_TO_BE;

	if (BPF_CLASS(i->code) != BPF_ALU)
		return false;
	switch (i->imm) {
	case 16:
		if (swap) {
			byte(j, 0x66);
			pair(j, false, 0xc1, 0, dst);	/* rol 8 */
			byte(j, 8);
		}
		rex(j, false, dst, dst);
		byte(j, 0x0f);
		byte(j, 0xb7);				/* movzx */
		byte(j, 0xc0 | (dst & 7) << 3 | (dst & 7));
		return true;
	case 32:
	case 64:
		if (swap) {
			rex(j, i->imm == 64, 0, dst);
			byte(j, 0x0f);
			byte(j, 0xc8 | (dst & 7));
		} else if (i->imm == 32) {
			move(j, false, dst, dst);
		}
		return true;
	}
	return false;
}

static bool alu(struct jit *j, const struct bpf_insn *i)
{
	static const u8 plain[16] = {
		[BPF_ADD >> 4] = 0x01, [BPF_SUB >> 4] = 0x29, [BPF_AND >> 4] = 0x21,
		[BPF_OR >> 4] = 0x09,  [BPF_XOR >> 4] = 0x31,
	};
	bool wide = BPF_CLASS(i->code) == BPF_ALU64, reg = BPF_SRC(i->code) == BPF_X;
	u8 dst = native[i->dst_reg], src = native[i->src_reg], op = BPF_OP(i->code);

	if (i->off)
		return false;			/* signed division, sign extension */
	switch (op) {
	case BPF_ADD:
	case BPF_SUB:
	case BPF_AND:
	case BPF_OR:
	case BPF_XOR:
		if (reg) {
			pair(j, wide, plain[op >> 4], src, dst);
		} else {
			pair(j, wide, 0x81, plain[op >> 4] >> 3, dst);
			number(j, i->imm, 4);
		}
		return true;
	case BPF_MOV:
		if (reg) {
			move(j, wide, dst, src);
		} else {
			pair(j, wide, 0xc7, 0, dst);
			number(j, i->imm, 4);
		}
		return true;
	case BPF_MUL:
		rex(j, wide, dst, reg ? src : dst);
		if (reg) {
			byte(j, 0x0f);
			byte(j, 0xaf);
			byte(j, 0xc0 | (dst & 7) << 3 | (src & 7));
		} else {
			byte(j, 0x69);
			byte(j, 0xc0 | (dst & 7) << 3 | (dst & 7));
			number(j, i->imm, 4);
		}
		return true;
	case BPF_NEG:
		pair(j, wide, 0xf7, 3, dst);
		return true;
	case BPF_DIV:
	case BPF_MOD:
		divide(j, wide, op == BPF_MOD, dst, i);
		return true;
	case BPF_LSH:
		shift(j, wide, 4, dst, i);
		return true;
	case BPF_RSH:
		shift(j, wide, 5, dst, i);
		return true;
	case BPF_ARSH:
		shift(j, wide, 7, dst, i);
		return true;
	case BPF_END:
		return reorder(j, dst, i);
	}
	return false;
}

static bool load(struct jit *j, const struct bpf_insn *i)
{
	u8 dst = native[i->dst_reg], src = native[i->src_reg];

	if (BPF_MODE(i->code) != BPF_MEM)
		return false;
	rex(j, BPF_SIZE(i->code) == BPF_DW, dst, src);
	switch (BPF_SIZE(i->code)) {
	case BPF_B:
	case BPF_H:
		byte(j, 0x0f);
		byte(j, BPF_SIZE(i->code) == BPF_B ? 0xb6 : 0xb7);
		break;
	default:
		byte(j, 0x8b);
	}
	memory(j, dst, src, i->off);
	return true;
}

static bool store(struct jit *j, const struct bpf_insn *i)
{
	bool constant = BPF_CLASS(i->code) == BPF_ST;
	u8 size = BPF_SIZE(i->code), base = native[i->dst_reg];
	u8 reg = constant ? 0 : native[i->src_reg];

	if (constant && BPF_MODE(i->code) == 0xc0)
		return true;			/* BPF_NOSPEC */
	if (BPF_MODE(i->code) == BPF_ATOMIC) {
		if (constant || i->imm != BPF_ADD || (size != BPF_W && size != BPF_DW))
			return false;
		byte(j, 0xf0);
		rex(j, size == BPF_DW, reg, base);
		byte(j, 0x01);
		memory(j, reg, base, i->off);
		return true;
	}
	if (BPF_MODE(i->code) != BPF_MEM)
		return false;
	if (size == BPF_H)
		byte(j, 0x66);
	rex(j, size == BPF_DW, reg, base);
	byte(j, (constant ? 0xc6 : 0x88) | (size != BPF_B));
	memory(j, reg, base, i->off);
	if (constant)
		number(j, i->imm, size == BPF_B ? 1 : size == BPF_H ? 2 : 4);
	return true;
}

static bool jump(struct jit *j, const struct bpf_insn *i, u32 here)
{
	bool wide = BPF_CLASS(i->code) == BPF_JMP, reg = BPF_SRC(i->code) == BPF_X;
	u8 dst = native[i->dst_reg], src = native[i->src_reg], op = BPF_OP(i->code);
	u32 target = here + 1 + (op == BPF_CALL_ARGS ? CALLEE(i) : i->off);

	if (!wide && (op == BPF_JA || op == BPF_CALL || op == BPF_EXIT || op >= BPF_CALL_ARGS))
		return false;
	switch (op) {
	case BPF_EXIT:
		end(j);
		return true;
	case BPF_CALL:
		if (i->src_reg)
			return false;
		call(j, i->imm);
		return true;
	}
	if (target >= j->count)
		return false;
	switch (op) {
	case BPF_CALL_ARGS:
		byte(j, 0xe8);
		relative(j, j->entry[target]);
		return true;
	case BPF_JA:
		byte(j, 0xe9);
		relative(j, j->at[target]);
		return true;
	}
	if (!conditions[op >> 4])
		return false;
	if (reg) {
		pair(j, wide, op == BPF_JSET ? 0x85 : 0x39, src, dst);
	} else {
		pair(j, wide, op == BPF_JSET ? 0xf7 : 0x81, op == BPF_JSET ? 0 : 7, dst);
		number(j, i->imm, 4);
	}
	byte(j, 0x0f);
	byte(j, 0x80 | conditions[op >> 4]);
	relative(j, j->at[target]);
	return true;
}

static bool pass(struct jit *j)
{
	j->length = 0;
	for (u32 n = 0; n < j->count; n++) {
		const struct bpf_insn *i = &j->insns[n];
		bool known = false;

		if (j->entry[n]) {
			j->entry[n] = j->length;
			if (!n)
				j->entry[n] = 1;	/* stays an entry; nobody calls it */
			begin(j);
		}
		j->at[n] = j->length;
		switch (BPF_CLASS(i->code)) {
		case BPF_ALU:
		case BPF_ALU64:
			known = alu(j, i);
			break;
		case BPF_LDX:
			known = load(j, i);
			break;
		case BPF_ST:
		case BPF_STX:
			known = store(j, i);
			break;
		case BPF_JMP:
		case BPF_JMP32:
			known = jump(j, i, n);
			break;
		case BPF_LD:
			if (i->code != (BPF_LD | BPF_IMM | BPF_DW) || n + 1 >= j->count)
				break;
			rex(j, true, 0, native[i->dst_reg]);
			byte(j, 0xb8 | (native[i->dst_reg] & 7));
			number(j, i->imm, 4);
			number(j, i[1].imm, 4);
			j->at[++n] = j->length;
			known = true;
			break;
		}
		if (!known)
			return false;
	}
	return true;
}

#ifdef TESTCTL_JIT_HAS_ENV
#define JIT_ARGUMENTS struct bpf_verifier_env *env, struct bpf_prog *prog
#else
#define JIT_ARGUMENTS struct bpf_prog *prog
#endif

struct bpf_prog *bpf_int_jit_compile(JIT_ARGUMENTS)
{
	struct jit j = { .insns = prog->insnsi, .count = prog->len };

	j.stack = 512;				/* of any function: the verifier's limit */
	j.at = vzalloc(array_size(j.count, sizeof(u32)));
	j.entry = vzalloc(array_size(j.count, sizeof(u32)));
	if (!j.at || !j.entry)
		goto out;
	j.entry[0] = 1;
	for (u32 n = 0; n < j.count; n++)
		if (j.insns[n].code == (BPF_JMP | BPF_CALL_ARGS)) {
			u32 target = n + 1 + CALLEE(&j.insns[n]);

			if (target >= j.count)
				goto out;
			j.entry[target] = 1;
		}
	if (!pass(&j))
		goto out;
	j.out = vmalloc(j.length);
	if (!j.out)
		goto out;
	pass(&j);
	prog->bpf_func = (void *)j.out;
out:
	vfree(j.at);
	vfree(j.entry);
	return prog;
}

#endif
