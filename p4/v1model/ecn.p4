// SPDX-License-Identifier: Apache-2.0
// Congestion Experienced by queue depth, and the one place where the field is written.

#ifndef ECN_P4
#define ECN_P4

control QueueMark(inout Metadata meta, in standard_metadata_t standard) {
    bit<32> limit;

    // Marked from this depth on, in the unit of enq_qdepth: bytes in eBPF, packets on BMv2.  It is what
    // waits when the packet arrives, itself not counted.
    action threshold(bit<32> depth) {
        limit = depth;
    }

    table ecn {
        key = { standard.egress_port: exact @name("port"); }
        actions = { threshold; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (ecn.apply().hit) {
            if ((bit<32>)standard.enq_qdepth >= limit) {
                meta.tap.ecn_out = ECN_CE;
            }
        }
    }
}

// The field is the lowest two bits of IPv4's first word, so its checksum changes by the difference.
// IPv6 has none, and TCP's does not cover the field.
control WriteEcn(inout Headers hdr, in Metadata meta) {
    apply {
        if (hdr.ipv4.isValid()) {
            if (meta.tap.ecn_out > meta.tap.ecn_in) {
                hdr.ipv4.checksum = word_grew(hdr.ipv4.checksum, (bit<16>)(meta.tap.ecn_out - meta.tap.ecn_in));
            } else {
                hdr.ipv4.checksum = word_grew(hdr.ipv4.checksum, ~(bit<16>)(meta.tap.ecn_in - meta.tap.ecn_out));
            }
            hdr.ipv4.ecn = meta.tap.ecn_out[1:0];
        } else {
            hdr.ipv6.ecn = meta.tap.ecn_out[1:0];
        }
    }
}

#endif
