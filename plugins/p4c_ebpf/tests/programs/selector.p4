/* SPDX-License-Identifier: Apache-2.0 */
/* Equal-cost paths by an action selector over the flow; a table that shares it, and one with an action profile. */
#include "include/common.p4"

header flow_t { bit<16> src; bit<16> dst; }
struct headers_t { ethernet_t ethernet; flow_t flow; }
struct metadata_t { bit<16> path; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.flow);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    action_selector(HashAlgorithm.crc16, 4, 16) paths;
    action_profile(4) marks;
    action send(bit<9> port, bit<16> path) {
        standard.egress_spec = port;
        meta.path = path;
    }
    action discard() { mark_to_drop(standard); }
    action mark(bit<48> source) { hdr.ethernet.src = source; }

    table routes {
        key = { hdr.ethernet.dst: exact; hdr.flow.src: selector; hdr.flow.dst: selector; }
        actions = { send; discard; }
        size = 8;
        implementation = paths;
    }
    table backup {
        key = { hdr.ethernet.kind: ternary; hdr.flow.src: selector; hdr.flow.dst: selector; }
        actions = { send; discard; }
        size = 8;
        implementation = paths;
    }
    table marked {
        key = { hdr.ethernet.kind: exact; }
        actions = { mark; NoAction; }
        size = 8;
        implementation = marks;
    }

    apply {
        if (!routes.apply().hit) {
            backup.apply();
        }
        if (marked.apply().hit) {
            hdr.flow.dst = meta.path;
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.flow); } }
SWITCH
