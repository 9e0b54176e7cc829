/* SPDX-License-Identifier: GPL-2.0 */
/* The sum of the bytes behind a packet's headers, for checksums that cover them. */
#ifndef P4C_EBPF_PAYLOAD_H
#define P4C_EBPF_PAYLOAD_H

#define PAYLOAD_PIECE 512		/* bytes: as many as bpf_csum_diff() takes */
#define PAYLOAD_PIECES 129

struct payload_piece {
	u8 bytes[PAYLOAD_PIECE + 4];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct payload_piece);
} payload_piece SEC(".maps");

/*
 * RFC 1071's sum, not folded, of 16-bit words as they lie, from byte `at` on; an odd byte at the end is followed by a
 * zero.  A piece of another length stands behind the loop: in it the verifier would look at 2^129 ways.
 */
static __noinline u32 frame_sum(struct __sk_buff *skb, u32 at)
{
	u32 zero = 0, left;
	struct payload_piece *piece = bpf_map_lookup_elem(&payload_piece, &zero);
	s64 sum = 0;

	if (!piece)
		return 0;
	for (u32 i = 0; i < PAYLOAD_PIECES; i++) {
		if (at + PAYLOAD_PIECE > skb->len)
			break;
		bpf_skb_load_bytes(skb, at, piece->bytes, PAYLOAD_PIECE);
		sum = bpf_csum_diff(NULL, 0, piece->bytes, PAYLOAD_PIECE, sum);
		at += PAYLOAD_PIECE;
	}
	if (at >= skb->len)
		return sum;
	left = at_most(skb->len - at, PAYLOAD_PIECE);
	if (bpf_skb_load_bytes(skb, at, piece->bytes, left))
		return sum;
	__builtin_memset(piece->bytes + left, 0, 4);
	return bpf_csum_diff(NULL, 0, piece->bytes, (left + 3) & ~3U, sum);
}

#endif
