/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the destination port of UDP, and its checksum over the payload; a packet with a wrong one leaves by port 3. */
#include "include/common.p4"

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
}

struct metadata_t {
}

#define COVERED { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.length, \
                  hdr.udp.src, hdr.udp.dst, hdr.udp.length }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum_with_payload(hdr.udp.isValid(), COVERED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

INGRESS {
    apply {
        if (standard.checksum_error == 1) {
            standard.egress_spec = 3;
        } else {
            standard.egress_spec = 2;
            hdr.udp.dst = 4242;
        }
    }
}

EMPTY_EGRESS

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.udp.isValid(), COVERED, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

DEPARSE { apply { packet.emit(hdr); } }

SWITCH
