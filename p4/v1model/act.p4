// SPDX-License-Identifier: Apache-2.0
// The chosen fate becomes the packet's.  It is told only when it was possible: no mark on a packet that
// is not ECN-capable, no clearing where there is no CE, no copy of a packet that goes nowhere.

#ifndef ACT_P4
#define ACT_P4

// TCP's checksum stays what it was, so that it is wrong for what was corrupted or trimmed.
control Change(inout Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
    bit<32> begin;      // of the payload

    apply {
        begin = 14 + ((bit<32>)hdr.tcp.data_offset << 2);
        if (hdr.vlan.isValid()) {
            begin = begin + 4;
        }
        if (hdr.ipv4.isValid()) {
            begin = begin + 20;
        } else {
            begin = begin + 40;
        }
        if (meta.fate == FATE_DUPLICATE) {
            if (standard.egress_spec != NOWHERE) {
                meta.tap.fate = FATE_DUPLICATE;
                standard.mcast_grp = TWICE + (bit<16>)standard.egress_spec;
            }
        } else if (meta.fate == FATE_CORRUPT) {
            meta.tap.fate = FATE_CORRUPT;
            meta.tap.flip_at = (bit<16>)begin;
        } else if (meta.fate == FATE_CORRUPT_HEADER) {
            meta.tap.fate = FATE_CORRUPT_HEADER;
            hdr.tcp.window = hdr.tcp.window ^ 1;
        } else if (meta.fate == FATE_TRIM) {
            meta.tap.fate = FATE_TRIM;
            truncate(begin);
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.total_len = hdr.ipv4.total_len - meta.tap.payload;
                hdr.ipv4.checksum = word_grew(hdr.ipv4.checksum, ~meta.tap.payload);
            } else {
                hdr.ipv6.payload_len = hdr.ipv6.payload_len - meta.tap.payload;
            }
        }
    }
}

// A packet that a swap chooses is kept until the next data packet of its flow has been sent; that one is not
// kept itself.
control Swap(inout Metadata meta) {
    register<bit<8>>(FLOWS) kept;       // whether a packet of the flow is
    bit<8> place;
    bit<8> waits;

    action keep_at(bit<8> at) {
        place = at;
    }

    table swap {
        key = { meta.tap.flow: exact @name("flow"); }
        actions = { keep_at; @defaultonly NoAction; }
        default_action = NoAction();
        size = PLACES;
    }

    apply {
        if (swap.apply().hit) {
            kept.read(waits, (bit<32>)meta.tap.flow);
            if (meta.tap.ordinal == 1) {
                waits = 0;
            }
            if (waits == 1) {
                meta.tap.park = PARK_TAKE | place;
                waits = 0;
            } else if (meta.fate == FATE_SWAP) {
                meta.tap.fate = FATE_SWAP;
                meta.tap.park = PARK_KEEP | place;
                waits = 1;
            }
            kept.write((bit<32>)meta.tap.flow, waits);
        }
    }
}

control Act(inout Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
    Change() change;

    apply {
        if (meta.fate == FATE_MARK) {
            if (meta.tap.ecn_in != ECN_NOT_ECT) {
                meta.tap.fate = FATE_MARK;
                meta.tap.ecn_out = ECN_CE;
            }
        } else if (meta.fate == FATE_CLEAR) {
            if (meta.tap.ecn_in == ECN_CE) {
                meta.tap.fate = FATE_CLEAR;
                meta.tap.ecn_out = ECN_ECT0;
            }
        } else if (meta.fate == FATE_ECHO) {
            meta.tap.fate = FATE_ECHO;
            if (hdr.tcp.flags & TCP_ECE == 0) {
                hdr.tcp.flags = hdr.tcp.flags | TCP_ECE;
                hdr.tcp.checksum = word_grew(hdr.tcp.checksum, (bit<16>)TCP_ECE);
            }
        } else if (meta.fate == FATE_DELAY || meta.fate == FATE_REORDER) {
            meta.tap.fate = meta.fate;
            meta.tap.hold_ns = meta.hold_ns;
        } else if (meta.fate >= FATE_DUPLICATE) {
            change.apply(hdr, meta, standard);
        } else {
            meta.tap.fate = meta.fate;
            mark_to_drop(standard);
        }
    }
}

#endif
