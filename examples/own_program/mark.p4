/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards by destination, and marks (ECN) what waited in its queue for longer than its table says. */
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<2> ECN_NOT_CAPABLE = 0;
const bit<2> ECN_CE = 3;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

header ipv4_t {
    bit<4> version;
    bit<4> words;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action lost() {
        mark_to_drop(standard);
    }
    action to(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { to; lost; }
        default_action = lost();
        size = 64;
    }
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            lost();
        }
    }
}

control Mark(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(512) marked;          // packets, by port

    action mark_after(bit<32> wait_us) {
        if (hdr.ipv4.ecn != ECN_NOT_CAPABLE && standard.deq_timedelta >= wait_us) {
            bit<32> so_far;
            marked.read(so_far, (bit<32>)standard.egress_port);
            marked.write((bit<32>)standard.egress_port, so_far + 1);
            hdr.ipv4.ecn = ECN_CE;
        }
    }
    table marking {
        key = { standard.egress_port: exact; }
        actions = { mark_after; NoAction; }
        default_action = NoAction();
        size = 512;
    }
    apply {
        marking.apply();
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Parse(), Verify(), Route(), Mark(), Update(), Deparse()) main;
