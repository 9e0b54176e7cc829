/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of labels: parsed in a loop, swapped, popped and pushed. */
#include "include/common.p4"

header label_t {
    bit<20> label;
    bit<3> class;
    bit<1> bottom;
    bit<8> ttl;
}

struct headers_t { ethernet_t ethernet; label_t[3] labels; ipv4_t ipv4; }
struct metadata_t { bit<20> label; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            TYPE_MPLS: label;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) { 0: label; 1: ipv4; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    action swap_label(bit<20> label, bit<9> port) {
        hdr.labels[0].label = label;
        hdr.labels[0].ttl = hdr.labels[0].ttl - 1;
        standard.egress_spec = port;
    }

    action pop(bit<9> port) {
        standard.egress_spec = port;
        if (hdr.labels[0].isValid() && hdr.labels[0].bottom == 1) {
            hdr.ethernet.kind = TYPE_IPV4;
        }
        hdr.labels.pop_front(1);
    }

    action push(bit<20> label, bit<9> port) {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0].label = label;
        hdr.labels[0].class = 0;
        hdr.labels[0].ttl = 64;
        hdr.labels[0].bottom = (bit<1>)(hdr.ethernet.kind == TYPE_IPV4);
        hdr.ethernet.kind = TYPE_MPLS;
        standard.egress_spec = port;
    }

    table labels {
        key = { meta.label: exact @name("hdr.labels[0].label"); hdr.labels[0].isValid(): exact; }
        actions = { swap_label; pop; push; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        if (standard.parser_error == error.StackOutOfBounds) {
            mark_to_drop(standard);
            exit;
        }
        if (hdr.labels[0].isValid()) {
            meta.label = hdr.labels[0].label;
        }
        labels.apply();
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.labels); packet.emit(hdr.ipv4); } }
SWITCH
