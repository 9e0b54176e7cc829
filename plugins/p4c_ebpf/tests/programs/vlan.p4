/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pops VLAN tags at the egress port. */
#include "include/common.p4"

struct headers_t { ethernet_t ethernet; vlan_t vlan; }
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { TYPE_VLAN: vlan; default: accept; }
    }
    state vlan {
        packet.extract(hdr.vlan);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    action send(bit<9> port) { standard.egress_spec = port; }
    action flood(bit<16> group) { standard.mcast_grp = group; }
    action discard() { mark_to_drop(standard); }

    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; discard; }
        default_action = discard();
        size = 64;
    }

    apply { forward.apply(); }
}

EGRESS {
    action tag(bit<12> id) {
        if (!hdr.vlan.isValid()) {
            hdr.vlan.setValid();
            hdr.vlan.priority = 0;
            hdr.vlan.eligible = 0;
            hdr.vlan.kind = hdr.ethernet.kind;
            hdr.ethernet.kind = TYPE_VLAN;
        }
        hdr.vlan.id = id;
    }

    action untag() {
        if (hdr.vlan.isValid()) {
            hdr.ethernet.kind = hdr.vlan.kind;
            hdr.vlan.setInvalid();
        }
    }

    table ports {
        key = { standard.egress_port: exact; }
        actions = { tag; untag; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply { ports.apply(); }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.vlan); } }
SWITCH
