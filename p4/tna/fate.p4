// SPDX-License-Identifier: Apache-2.0
// As v1model/fate.p4.  Tofino's ranges end at 20 bits, so ranges come as prefixes (ternary).
// A |-| B, which stops at 0, is how two fields are compared: it is 0 when A <= B.

#ifndef FATE_P4
#define FATE_P4

control Fate(inout State meta) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) fate_hits;
    Register<bit<32>, bit<14>>(2 * FLOWS, 0) turns;
    bit<14> cell;
    bit<32> period;
    bit<32> turn;
    bit<16> lead;
    fate_t asked;
    bit<16> turn_rank;

    RegisterAction<bit<32>, bit<14>, bit<32>>(turns) next_turn = {
        void apply(inout bit<32> value, out bit<32> now) {
            if (value >= period || meta.ordinal == 1) {
                value = 1;
            } else {
                value = value + 1;
            }
            now = value;
        }
    };

    action drop(bit<16> rank) {
        fate_hits.count();
        meta.fate = FATE_DROP;
        meta.rank = rank;
    }

    action mark(bit<16> rank) {
        fate_hits.count();
        meta.fate = FATE_MARK;
        meta.rank = rank;
    }

    action echo(bit<16> rank) {
        fate_hits.count();
        meta.fate = FATE_ECHO;
        meta.rank = rank;
    }

    action clear(bit<16> rank) {
        fate_hits.count();
        meta.fate = FATE_CLEAR;
        meta.rank = rank;
    }

    table fate {
        key = {
            meta.flow: exact @name("flow");
            meta.kind: exact @name("kind");
            meta.ordinal: ternary @name("ordinal");
            meta.first_ordinal: ternary @name("first_ordinal");
            meta.offset: ternary @name("offset");
        }
        actions = { drop; mark; echo; clear; @defaultonly NoAction; }
        default_action = NoAction();
        counters = fate_hits;
        size = RULES;
    }

    action every_nth(bit<32> n, fate_t code, bit<16> every_rank) {
        period = n;
        asked = code;
        turn_rank = every_rank;
    }

    table every {
        key = {
            meta.flow: exact @name("flow");
            meta.kind: exact @name("kind");
        }
        actions = { every_nth; @defaultonly NoAction; }
        default_action = NoAction();
        size = RULES;
    }

    apply {
        cell = meta.flow[12:0] ++ meta.kind[1:1];
        fate.apply();
        if (every.apply().hit) {
            turn = next_turn.execute(cell);
            lead = meta.rank |-| turn_rank;
            if (turn == period && lead != 0) {
                meta.fate = asked;
                meta.rank = turn_rank;
            }
        }
    }
}

#endif
