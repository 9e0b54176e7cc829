/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards by destination MAC: an exact table, nothing else. */
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

struct tap_t {
    bit<16> first;
    bit<8> second;
}

struct metadata_t {
    tap_t tap;
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

    action send(bit<9> port) {
        standard.egress_spec = port;
        meta.tap.first = (bit<16>)port;
    }

    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; discard; }
        default_action = discard();
        size = 16;
    }

    apply {
        forward.apply();
        meta.tap.second = 7;
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
