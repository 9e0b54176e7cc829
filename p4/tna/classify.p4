// SPDX-License-Identifier: Apache-2.0
// As v1model/classify.p4.

#ifndef CLASSIFY_P4
#define CLASSIFY_P4

control Classify(in Headers hdr, inout State meta) {
    action set_flow(flow_t flow) {
        meta.flow = flow;
    }

    table connection4 {
        key = {
            hdr.ipv4.src: exact @name("src");
            hdr.ipv4.dst: exact @name("dst");
            hdr.ipv4.protocol: exact @name("protocol");
            meta.sport: exact @name("sport");
            meta.dport: exact @name("dport");
        }
        actions = { set_flow; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    table classify4 {
        key = {
            hdr.ipv4.src: ternary @name("src");
            hdr.ipv4.dst: ternary @name("dst");
            hdr.ipv4.protocol: ternary @name("protocol");
            meta.sport: ternary @name("sport");
            meta.dport: ternary @name("dport");
        }
        actions = { set_flow; @defaultonly NoAction; }
        default_action = NoAction();
        size = WILDCARDS;
    }

    table connection6 {
        key = {
            hdr.ipv6.src: exact @name("src");
            hdr.ipv6.dst: exact @name("dst");
            hdr.ipv6.next_header: exact @name("protocol");
            meta.sport: exact @name("sport");
            meta.dport: exact @name("dport");
        }
        actions = { set_flow; @defaultonly NoAction; }
        default_action = NoAction();
        size = FLOWS;
    }

    table classify6 {
        key = {
            hdr.ipv6.src: ternary @name("src");
            hdr.ipv6.dst: ternary @name("dst");
            hdr.ipv6.next_header: ternary @name("protocol");
            meta.sport: ternary @name("sport");
            meta.dport: ternary @name("dport");
        }
        actions = { set_flow; @defaultonly NoAction; }
        default_action = NoAction();
        size = WILDCARDS;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (!connection4.apply().hit) {
                classify4.apply();
            }
        } else if (!connection6.apply().hit) {
            classify6.apply();
        }
    }
}

// A segment whose lengths contradict each other is neither data nor ack.
control Describe(in Headers hdr, inout State meta) {
    bit<16> short_by;

    action header_is(bit<16> bytes) {
        meta.header_bytes = bytes;
    }

    table header_length {
        key = { hdr.tcp.data_offset: exact; }
        actions = { header_is; NoAction; }
        default_action = NoAction();
        const entries = {
            5: header_is(20);
            6: header_is(24);
            7: header_is(28);
            8: header_is(32);
            9: header_is(36);
            10: header_is(40);
            11: header_is(44);
            12: header_is(48);
            13: header_is(52);
            14: header_is(56);
            15: header_is(60);
        }
    }

    apply {
        if (hdr.ipv4.isValid()) {
            meta.segment = hdr.ipv4.total_len |-| 20;
        } else {
            meta.segment = hdr.ipv6.payload_len;
        }
        header_length.apply();
        short_by = meta.header_bytes |-| meta.segment;
        if (meta.header_bytes != 0 && short_by == 0) {
            meta.payload = meta.segment - meta.header_bytes;
            if (meta.payload != 0) {
                meta.kind = KIND_DATA;
            } else if (hdr.tcp.flags & (TCP_SYN | TCP_FIN | TCP_RST) == 0) {
                meta.kind = KIND_ACK;
            }
        }
    }
}

#endif
