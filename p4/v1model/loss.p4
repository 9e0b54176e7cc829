// SPDX-License-Identifier: Apache-2.0
// Loss at a rate: a hash of the data segment's ordinal and of three salts, which stand for flow and
// seed, says whether it is lost.  A CRC alone is linear; the additions between (with their carries)
// are not, so that the draws are like independent ones.  Reference: testctl_agent/spec/loss.py.

#ifndef LOSS_P4
#define LOSS_P4

control Loss(inout Metadata meta) {
    bit<32> draw;
    bit<32> limit;
    bit<16> rank;

    // Lost with probability (most + 1) / 2^32.
    action lose(bit<32> most, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c, bit<16> loss_rank) {
        limit = most;
        rank = loss_rank;
        draw = meta.tap.ordinal + salt_a;
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
        draw = draw + salt_b;
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
        draw = draw + salt_c;
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
    }

    table loss {
        key = { meta.tap.flow: exact @name("flow"); }
        actions = { lose; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    apply {
        if (loss.apply().hit) {
            if (draw <= limit && rank < meta.rank) {
                meta.fate = FATE_LOSE;
                meta.rank = rank;
            }
        }
    }
}

#endif
