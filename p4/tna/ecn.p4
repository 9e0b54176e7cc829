// SPDX-License-Identifier: Apache-2.0
// As QueueMark of v1model/ecn.p4; the queue is counted in cells of 80 bytes, and so is the threshold.

#ifndef ECN_P4
#define ECN_P4

control QueueMark(inout Headers hdr, inout State meta, in egress_intrinsic_metadata_t port) {
    SetEcn() set_ecn;
    bit<32> limit;
    bit<32> below;
    ecn_t ecn_now;

    action threshold(bit<32> depth) {
        limit = depth;
    }

    table ecn {
        key = { port.egress_port: exact @name("port"); }
        actions = { threshold; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            ecn_now = (ecn_t)hdr.ipv4.ecn;
        } else {
            ecn_now = (ecn_t)hdr.ipv6.ecn;
        }
        if (ecn_now == ECN_ECT0 || ecn_now == ECN_ECT1) {
            if (ecn.apply().hit) {
                below = limit |-| (bit<32>)port.enq_qdepth;
                if (below == 0) {
                    set_ecn.apply(hdr, meta, ECN_CE);
                }
            }
        }
    }
}

#endif
