// SPDX-License-Identifier: Apache-2.0
// Whose packet it is: a complete five-tuple first, then those with wildcards; and which kind of packet.

#ifndef CLASSIFY_P4
#define CLASSIFY_P4

control Classify(in Headers hdr, inout Metadata meta) {
    action set_flow(flow_t flow) {
        meta.tap.flow = flow;
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
control Describe(in Headers hdr, inout Metadata meta) {
    bit<32> payload;

    apply {
        payload = meta.segment - ((bit<32>)hdr.tcp.data_offset << 2);
        if (hdr.tcp.data_offset >= 5 && payload < 0x10000) {
            meta.tap.payload = (bit<16>)payload;
            if (payload != 0) {
                meta.tap.kind = KIND_DATA;
            } else if (hdr.tcp.flags & (TCP_SYN | TCP_FIN | TCP_RST) == 0) {
                meta.tap.kind = KIND_ACK;
            }
        }
    }
}

#endif
