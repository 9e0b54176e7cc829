/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts packets: the row says to how many bytes, and nothing leaves with more than 100. */
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action discard() {
        mark_to_drop(standard);
    }

    action cut_to(bit<9> port, bit<32> bytes) {
        standard.egress_spec = port;
        hdr.ethernet.kind = 0x9000;
        truncate(bytes);
    }

    action flood(bit<16> group, bit<32> bytes) {
        standard.mcast_grp = group;
        truncate(bytes);
    }

    table cutting {
        key = { hdr.ethernet.dst: exact; }
        actions = { cut_to; flood; discard; }
        default_action = discard();
        size = 16;
    }

    apply {
        truncate(100);
        cutting.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), Verify(), ingress(), egress(), Update(), Deparse()) main;
