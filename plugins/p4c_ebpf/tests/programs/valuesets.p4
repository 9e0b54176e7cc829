/* SPDX-License-Identifier: Apache-2.0 */
/* Parser value sets: of one field, which two states select by, and of three; the packet says which were hit. */
#include "include/common.p4"

header hit_t { bit<8> outer; bit<8> inner; bit<8> flow; }
header flow_t { bit<64> src; bit<4> kind; bit<12> port; bit<48> dst; }
struct headers_t { hit_t hit; ethernet_t ethernet; ethernet_t inner; flow_t flow; }
struct metadata_t { bit<8> outer; bit<8> inner; bit<8> flow; }
struct flow_key_t { bit<64> src; bit<4> kind; bit<12> port; }

PARSER {
    value_set<bit<16>>(4) tunnels;
    value_set<flow_key_t>(4) flows;

    state start {
        meta.outer = 0;
        meta.inner = 0;
        meta.flow = 0;
        packet.extract(hdr.hit);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x1111: flow; tunnels: inner; default: accept; }
    }
    state inner {
        meta.outer = 1;
        packet.extract(hdr.inner);
        transition select(hdr.inner.kind) { tunnels: again; 0x1111: flow; default: accept; }
    }
    state again {
        meta.inner = 1;
        transition accept;
    }
    state flow {
        packet.extract(hdr.flow);
        transition select(hdr.flow.src, hdr.flow.kind, hdr.flow.port) { flows: known; default: accept; }
    }
    state known {
        meta.flow = 1;
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        hdr.hit.outer = meta.outer;
        hdr.hit.inner = meta.inner;
        hdr.hit.flow = meta.flow;
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE {
    apply {
        packet.emit(hdr.hit);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.inner);
        packet.emit(hdr.flow);
    }
}
SWITCH
