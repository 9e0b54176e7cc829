// SPDX-License-Identifier: Apache-2.0
// As v1model/parse.p4.  Tofino's parser can't count: lengths are for Describe.  Its checksum unit takes
// out of TCP's checksum what a fate may change, for the deparser to put back.

#ifndef PARSE_P4
#define PARSE_P4

parser ParsePacket(packet_in packet, inout Headers hdr, inout State meta) {
    Checksum() tcp_checksum;

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
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_TCP): tcp;
            (4, 5, 0, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.version, hdr.ipv6.next_header) {
            (6, PROTOCOL_TCP): tcp;
            (6, PROTOCOL_UDP): udp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        tcp_checksum.subtract({ hdr.tcp.checksum });
        tcp_checksum.subtract({ hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags });
        tcp_checksum.subtract_all_and_deposit(meta.residual);
        meta.sport = hdr.tcp.sport;
        meta.dport = hdr.tcp.dport;
        transition accept;
    }

    state udp {
        packet.extract(hdr.udp);
        meta.sport = hdr.udp.sport;
        meta.dport = hdr.udp.dport;
        transition accept;
    }
}

parser IngressParse(packet_in packet, out Headers hdr, out State meta, out ingress_intrinsic_metadata_t port) {
    ParsePacket() parse;

    state start {
        packet.extract(port);
        packet.advance(PORT_METADATA_SIZE);
        meta = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RANK_NONE, 0, 0 };
        parse.apply(packet, hdr, meta);
        transition accept;
    }
}

parser EgressParse(packet_in packet, out Headers hdr, out State meta, out egress_intrinsic_metadata_t port) {
    ParsePacket() parse;

    state start {
        packet.extract(port);
        meta = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, RANK_NONE, 0, 0 };
        parse.apply(packet, hdr, meta);
        transition accept;
    }
}

#endif
