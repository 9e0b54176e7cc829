// SPDX-License-Identifier: Apache-2.0
// Loss, delay and other changes at a rate: a hash of the data segment's ordinal and of three salts, which stand for
// flow and seed, says whether it is chosen.  A CRC alone is linear; the additions between (with their
// carries) are not, so that the draws are like independent ones.  Reference: testctl_agent/spec/loss.py.

#ifndef LOSS_P4
#define LOSS_P4

control Draw(inout bit<32> draw, in bit<32> second_salt, in bit<32> third_salt) {
    apply {
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
        draw = draw + second_salt;
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
        draw = draw + third_salt;
        hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
    }
}

control Loss(inout Metadata meta) {
    register<bit<8>>(FLOWS) losing;     // whether the last data segment was lost, of flows that lose in bursts
    Draw() drawing;
    bit<32> draw;
    bit<32> limit;
    bit<32> stay;
    bit<32> second;
    bit<32> third;
    bit<16> rank;
    bit<8>  losing_now;
    bit<8>  lost;
    bit<8>  bursts;

    // Lost with probability (most + 1) / 2^32.
    action lose(bit<32> most, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c, bit<16> loss_rank) {
        limit = most;
        rank = loss_rank;
        draw = meta.tap.ordinal + salt_a;
        second = salt_b;
        third = salt_c;
        bursts = 0;
    }

    // The chain of Gilbert (1960) with two states: after a lost segment the probability is go_on / 2^32.
    action lose_in_bursts(bit<32> most, bit<32> go_on, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c,
                          bit<16> loss_rank) {
        limit = most;
        stay = go_on;
        rank = loss_rank;
        draw = meta.tap.ordinal + salt_a;
        second = salt_b;
        third = salt_c;
        bursts = 1;
    }

    table loss {
        key = { meta.tap.flow: exact @name("flow"); }
        actions = { lose; lose_in_bursts; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    apply {
        if (loss.apply().hit) {
            drawing.apply(draw, second, third);
            lost = 0;
            if (draw <= limit) {
                lost = 1;
            }
            if (bursts == 1) {
                losing.read(losing_now, (bit<32>)meta.tap.flow);
                if (losing_now == 1 && meta.tap.ordinal != 1) {
                    lost = 0;
                    if (draw < stay) {
                        lost = 1;
                    }
                }
                losing.write((bit<32>)meta.tap.flow, lost);
            }
            if (lost == 1 && rank < meta.rank) {
                meta.fate = FATE_LOSE;
                meta.rank = rank;
            }
        }
    }
}

control Reorder(inout Metadata meta) {
    Draw() drawing;
    bit<32> draw;
    bit<32> limit;
    bit<32> second;
    bit<32> third;
    bit<32> hold;
    bit<16> rank;

    // Sent later by hold_ns with probability (most + 1) / 2^32.
    action hold_back(bit<32> most, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c, bit<16> reorder_rank,
                     bit<32> hold_ns) {
        limit = most;
        rank = reorder_rank;
        hold = hold_ns;
        draw = meta.tap.ordinal + salt_a;
        second = salt_b;
        third = salt_c;
    }

    table reorder {
        key = { meta.tap.flow: exact @name("flow"); }
        actions = { hold_back; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    apply {
        if (reorder.apply().hit) {
            drawing.apply(draw, second, third);
            if (draw <= limit && rank < meta.rank) {
                meta.fate = FATE_REORDER;
                meta.rank = rank;
                meta.hold_ns = hold;
            }
        }
    }
}

control DrawnChange(inout Metadata meta)(fate_t code) {
    Draw() drawing;
    bit<32> draw;
    bit<32> limit;
    bit<32> second;
    bit<32> third;
    bit<16> rank;

    // Changed with probability (most + 1) / 2^32.
    action change(bit<32> most, bit<32> salt_a, bit<32> salt_b, bit<32> salt_c, bit<16> drawn_rank) {
        limit = most;
        rank = drawn_rank;
        draw = meta.tap.ordinal + salt_a;
        second = salt_b;
        third = salt_c;
    }

    table drawn {
        key = { meta.tap.flow: exact @name("flow"); }
        actions = { change; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    apply {
        if (drawn.apply().hit) {
            drawing.apply(draw, second, third);
            if (draw <= limit && rank < meta.rank) {
                meta.fate = code;
                meta.rank = rank;
            }
        }
    }
}

#endif
