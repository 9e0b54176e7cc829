// SPDX-License-Identifier: Apache-2.0
// Ordinals of data segments and acks, and which data is sent for the first time.
//
// Data is sent for the first time when its sequence number is not below the highest end seen: what
// overlaps it is a retransmission.  Numbers are compared by their difference, which wraps with them.
// A SYN with another number than the last begins a new connection, counted from 1.

#ifndef COUNT_P4
#define COUNT_P4

control Count(inout Metadata meta) {
    register<bit<32>>(FLOWS) begins;        // ISN + 1
    register<bit<32>>(FLOWS) highest;       // end of data seen
    register<bit<32>>(FLOWS) data_seen;
    register<bit<32>>(FLOWS) first_seen;
    register<bit<32>>(FLOWS) acks_seen;
    bit<32> cell;
    bit<32> seq;        // of the first byte of data
    bit<32> begin;
    bit<32> end;
    bit<32> high;

    apply {
        cell = (bit<32>)meta.tap.flow;
        seq = meta.tap.seq;
        if (meta.tap.flags & TCP_SYN != 0) {
            seq = seq + 1;
            begins.read(begin, cell);
            if (begin != seq) {
                begins.write(cell, seq);
                highest.write(cell, seq);
                data_seen.write(cell, 0);
                first_seen.write(cell, 0);
                acks_seen.write(cell, 0);
            }
        }
        if (meta.tap.kind == KIND_DATA) {
            data_seen.read(meta.tap.ordinal, cell);
            meta.tap.ordinal = meta.tap.ordinal + 1;
            data_seen.write(cell, meta.tap.ordinal);
            begins.read(begin, cell);
            meta.offset = seq - begin;
            highest.read(high, cell);
            if (seq - high < BEHIND) {
                first_seen.read(meta.tap.first_ordinal, cell);
                meta.tap.first_ordinal = meta.tap.first_ordinal + 1;
                first_seen.write(cell, meta.tap.first_ordinal);
            }
            end = seq + (bit<32>)meta.tap.payload;
            if (end - high < BEHIND) {
                highest.write(cell, end);
            }
        } else if (meta.tap.kind == KIND_ACK) {
            acks_seen.read(meta.tap.ordinal, cell);
            meta.tap.ordinal = meta.tap.ordinal + 1;
            acks_seen.write(cell, meta.tap.ordinal);
        }
    }
}

#endif
