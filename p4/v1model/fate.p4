// SPDX-License-Identifier: Apache-2.0
// What the rules ask for: chosen packets, or every n-th.  Of the rules that fit, the lowest rank wins.

#ifndef FATE_P4
#define FATE_P4

control Fate(inout Metadata meta) {
    direct_counter(CounterType.packets_and_bytes) fate_hits;
    register<bit<32>>(2 * FLOWS) turns;     // packets since the last n-th one; data and acks in turn
    bit<32> cell;
    bit<32> period;
    bit<32> turn;
    fate_t asked;
    bit<32> hold;
    bit<16> turn_rank;

    action drop(bit<16> rank) {
        meta.fate = FATE_DROP;
        meta.rank = rank;
    }

    action mark(bit<16> rank) {
        meta.fate = FATE_MARK;
        meta.rank = rank;
    }

    action echo(bit<16> rank) {
        meta.fate = FATE_ECHO;
        meta.rank = rank;
    }

    action clear(bit<16> rank) {
        meta.fate = FATE_CLEAR;
        meta.rank = rank;
    }

    action delay(bit<16> rank, bit<32> hold_ns) {
        meta.fate = FATE_DELAY;
        meta.rank = rank;
        meta.hold_ns = hold_ns;
    }

    action change(bit<16> rank, fate_t code) {
        meta.fate = code;
        meta.rank = rank;
    }

    table fate {
        key = {
            meta.tap.flow: exact @name("flow");
            meta.tap.kind: exact @name("kind");
            meta.tap.ordinal: range @name("ordinal");
            meta.tap.first_ordinal: range @name("first_ordinal");
            meta.offset: range @name("offset");
        }
        actions = { drop; mark; echo; clear; delay; change; @defaultonly NoAction; }
        default_action = NoAction();
        counters = fate_hits;
        size = RULES;
    }

    action every_nth(bit<32> n, fate_t code, bit<16> every_rank) {
        period = n;
        asked = code;
        turn_rank = every_rank;
        hold = 0;
    }

    action delay_every_nth(bit<32> n, bit<16> every_rank, bit<32> hold_ns) {
        period = n;
        asked = FATE_DELAY;
        turn_rank = every_rank;
        hold = hold_ns;
    }

    table every {
        key = {
            meta.tap.flow: exact @name("flow");
            meta.tap.kind: exact @name("kind");
        }
        actions = { every_nth; delay_every_nth; @defaultonly NoAction; }
        default_action = NoAction();
        size = RULES;
    }

    apply {
        meta.rank = RANK_NONE;
        fate.apply();
        if (every.apply().hit) {
            cell = ((bit<32>)meta.tap.flow << 1) + (bit<32>)meta.tap.kind - 1;
            turns.read(turn, cell);
            if (meta.tap.ordinal == 1) {
                turn = 0;
            }
            turn = turn + 1;
            if (turn >= period) {
                turn = 0;
                if (turn_rank < meta.rank) {
                    meta.fate = asked;
                    meta.rank = turn_rank;
                    meta.hold_ns = hold;
                }
            }
            turns.write(cell, turn);
        }
    }
}

#endif
