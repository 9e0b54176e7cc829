/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses among equal paths by hashes: each algorithm writes its result into the packet. */
#include "include/common.p4"

header results_t {
    bit<32> crc32;
    bit<16> crc16;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> identity;
    bit<32> custom;
    bit<16> bounded;
}

struct headers_t { ethernet_t ethernet; results_t results; ipv4_t ipv4; ports_t ports; }
struct metadata_t { bit<3> odd; bit<14> path; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.results);
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { PROTOCOL_UDP: ports; default: accept; }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}
EMPTY_VERIFY

#define FIVE { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }

INGRESS {
    action to(bit<9> port) { standard.egress_spec = port; }

    table paths {
        key = { meta.path: exact; }
        actions = { to; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    apply {
        if (!hdr.ports.isValid()) {
            exit;
        }
        hash(hdr.results.crc32, HashAlgorithm.crc32, 32w0, FIVE, 64w0x100000000);
        hash(hdr.results.crc16, HashAlgorithm.crc16, 16w0, FIVE, 32w0x10000);
        hash(hdr.results.csum16, HashAlgorithm.csum16, 16w0, { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol }, 32w0x10000);
        hash(hdr.results.xor16, HashAlgorithm.xor16, 16w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.length }, 32w0x10000);
        hash(hdr.results.identity, HashAlgorithm.identity, 64w0, { hdr.ipv4.src, hdr.ipv4.ttl }, 64w0x1000000000000);
        hash(hdr.results.custom, HashAlgorithm.crc32_custom, 32w5, { hdr.ipv4.version, hdr.ipv4.words, 8w0xab }, 64w1000);
        hash(hdr.results.bounded, HashAlgorithm.crc16, 16w100, FIVE, 16w10);
        hash(meta.path, HashAlgorithm.crc32, 14w0, FIVE, 14w4);
        paths.apply();
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.results); packet.emit(hdr.ipv4); packet.emit(hdr.ports); } }
SWITCH
