/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a header of its own in front of IPv4, and takes it off; both can happen to a packet. */
#include "include/common.p4"

const bit<16> TYPE_TUNNEL = 0x1212;

header tunnel_t {
    bit<16> inside;
    bit<16> id;
    bit<24> spare;
}

struct headers_t { ethernet_t ethernet; tunnel_t tunnel; ipv4_t ipv4; }
struct metadata_t { bit<16> id; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            TYPE_TUNNEL: tunnel;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state tunnel {
        packet.extract(hdr.tunnel);
        transition select(hdr.tunnel.inside) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    action enter(bit<16> id, bit<9> port) {
        hdr.tunnel.setValid();
        hdr.tunnel.inside = hdr.ethernet.kind;
        hdr.tunnel.id = id;
        hdr.tunnel.spare = 0;
        hdr.ethernet.kind = TYPE_TUNNEL;
        standard.egress_spec = port;
    }

    action leave(bit<9> port) {
        hdr.ethernet.kind = hdr.tunnel.inside;
        meta.id = hdr.tunnel.id;
        hdr.tunnel.setInvalid();
        standard.egress_spec = port;
    }

    action pass(bit<9> port) { standard.egress_spec = port; }

    table entrances {
        key = { hdr.ipv4.dst: exact; }
        actions = { enter; NoAction; }
        default_action = NoAction();
    }

    table exits {
        key = { hdr.tunnel.id: exact; }
        actions = { pass; leave; NoAction; }
        default_action = NoAction();
    }

    apply {
        if (hdr.tunnel.isValid()) {
            exits.apply();
        } else if (hdr.ipv4.isValid()) {
            entrances.apply();
        } else {
            hdr.ethernet.setInvalid();
            standard.egress_spec = 3;
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.tunnel); packet.emit(hdr.ipv4); } }
SWITCH
