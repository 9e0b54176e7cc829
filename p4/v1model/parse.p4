// SPDX-License-Identifier: Apache-2.0
// Ethernet, one VLAN tag, IPv4 without options or IPv6 without extension headers, TCP or UDP.
// A packet that is something else, a fragment or cut short is parsed as far as it goes, and forwarded.

#ifndef PARSE_P4
#define PARSE_P4

parser Parse(packet_in packet, out Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.tap.ecn_in = (ecn_t)hdr.ipv4.ecn;
        meta.tap.ecn_out = (ecn_t)hdr.ipv4.ecn;
        meta.segment = (bit<32>)hdr.ipv4.total_len - 20;
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_TCP): tcp;
            (4, 5, 0, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.tap.ecn_in = (ecn_t)hdr.ipv6.ecn;
        meta.tap.ecn_out = (ecn_t)hdr.ipv6.ecn;
        meta.segment = (bit<32>)hdr.ipv6.payload_len;
        transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
            (6, PROTOCOL_TCP): tcp;
            (6, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        meta.sport = hdr.tcp.sport;
        meta.dport = hdr.tcp.dport;
        meta.tap.seq = hdr.tcp.seq;
        meta.tap.ack = hdr.tcp.ack;
        meta.tap.flags = hdr.tcp.flags;
        meta.tap.window = hdr.tcp.window;
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        meta.sport = hdr.udp.sport;
        meta.dport = hdr.udp.dport;
        transition accept;
    }
}

#endif
