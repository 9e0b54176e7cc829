// SPDX-License-Identifier: Apache-2.0
// As v1model/act.p4; the deparser makes the checksums right.

#ifndef ACT_P4
#define ACT_P4

control SetEcn(inout Headers hdr, inout State meta, in ecn_t ecn) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ecn = ecn[1:0];
            meta.changed = 1;
        } else {
            hdr.ipv6.ecn = ecn[1:0];
        }
    }
}

control Act(inout Headers hdr, inout State meta, inout ingress_intrinsic_metadata_for_deparser_t deparser) {
    SetEcn() set_ecn;
    ecn_t ecn;

    apply {
        if (hdr.ipv4.isValid()) {
            ecn = (ecn_t)hdr.ipv4.ecn;
        } else {
            ecn = (ecn_t)hdr.ipv6.ecn;
        }
        if (meta.fate == FATE_MARK) {
            if (ecn != ECN_NOT_ECT) {
                set_ecn.apply(hdr, meta, ECN_CE);
            }
        } else if (meta.fate == FATE_CLEAR) {
            if (ecn == ECN_CE) {
                set_ecn.apply(hdr, meta, ECN_ECT0);
            }
        } else if (meta.fate == FATE_ECHO) {
            hdr.tcp.flags = hdr.tcp.flags | TCP_ECE;
            meta.changed = 1;
        } else {
            deparser.drop_ctl = 1;
        }
    }
}

#endif
