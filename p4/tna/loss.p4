// SPDX-License-Identifier: Apache-2.0
// As v1model/loss.p4: the same draws.

#ifndef LOSS_P4
#define LOSS_P4

control Loss(inout State meta) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) first_step;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) second_step;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) third_step;
    bit<32> draw;
    bit<32> limit;
    bit<32> second_salt;
    bit<32> third_salt;
    bit<32> above;
    bit<16> lead;
    bit<16> rank;

    action lose(bit<32> most, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c, bit<16> loss_rank) {
        limit = most;
        rank = loss_rank;
        draw = meta.ordinal + salt_a;
        second_salt = salt_b;
        third_salt = salt_c;
    }

    table loss {
        key = { meta.flow: exact @name("flow"); }
        actions = { lose; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    apply {
        if (loss.apply().hit) {
            draw = first_step.get({ draw });
            draw = draw + second_salt;
            draw = second_step.get({ draw });
            draw = draw + third_salt;
            draw = third_step.get({ draw });
            above = draw |-| limit;
            lead = meta.rank |-| rank;
            if (above == 0 && lead != 0) {
                meta.fate = FATE_LOSE;
                meta.rank = rank;
            }
        }
    }
}

#endif
