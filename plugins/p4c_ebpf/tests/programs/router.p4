/* SPDX-License-Identifier: Apache-2.0 */
/* Routes IPv4 by longest prefix: verifies and updates the checksum, counts down the TTL. */
#include "include/common.p4"

HEADERS_ETHERNET_IPV4_PORTS
struct metadata_t { }

PARSER { PARSE_ETHERNET_IPV4_PORTS }

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

INGRESS {
    direct_counter(CounterType.packets_and_bytes) routed;

    action discard() { mark_to_drop(standard); }

    action to(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to; discard; }
        default_action = discard();
        size = 64;
        counters = routed;
    }

    apply {
        if (!hdr.ipv4.isValid() || standard.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            discard();
            exit;
        }
        routes.apply();
    }
}

EMPTY_EGRESS

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

EMIT_ETHERNET_IPV4_PORTS
SWITCH
