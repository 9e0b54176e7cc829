// SPDX-License-Identifier: Apache-2.0
// The chosen fate becomes the packet's.  It is told only when it was possible: no mark on a packet that
// is not ECN-capable, no clearing where there is no CE.

#ifndef ACT_P4
#define ACT_P4

control Act(inout Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
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
        } else {
            meta.tap.fate = meta.fate;
            mark_to_drop(standard);
        }
    }
}

#endif
