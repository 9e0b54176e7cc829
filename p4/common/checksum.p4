// SPDX-License-Identifier: Apache-2.0
// The Internet checksum of what has changed: RFC 1624, equation 4, with m' - m = `by`:
//     HC' = HC - ~m - m' = HC - by        in one's complement, so a borrow costs one more.
// `by` of a word that gets smaller is its one's complement: 0xfffe is -1.

#ifndef CHECKSUM_P4
#define CHECKSUM_P4

bit<16> word_grew(in bit<16> checksum, in bit<16> by) {
    return checksum - by - (checksum < by ? 16w1 : 16w0);
}

#endif
