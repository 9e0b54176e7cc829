/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet asks for: to come again so often, at once or after egress; each round is counted in it. */
#include "include/common.p4"

header asked_t {
    bit<8> resubmit;
    bit<8> recirculate;
    bit<8> rounds;          // that it has come again
    bit<4> kind;            // instance_type in ingress
    bit<4> after;           // and in egress
    bit<32> kept;           // what metadata that is preserved has counted
    bit<32> lost;           // what metadata that is not has
}

struct headers_t { ethernet_t ethernet; asked_t asked; }
struct metadata_t {
    @field_list(1, 2) bit<8> rounds;
    @field_list(2) bit<32> kept;
    bit<32> lost;
}

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.asked);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 2;
        hdr.asked.kind = (bit<4>)standard.instance_type;
        if (hdr.asked.resubmit > meta.rounds) {
            hdr.asked.kept = 0xffff;        // which is not in the packet that comes again
            meta.rounds = meta.rounds + 1;
            meta.kept = meta.kept + 1;
            meta.lost = meta.lost + 1;
            mark_to_drop(standard);
            resubmit_preserving_field_list(1);
        }
        if (hdr.ethernet.dst == 0xffffffffffff) {
            standard.mcast_grp = 7;
        }
    }
}

EGRESS {
    apply {
        hdr.asked.after = (bit<4>)standard.instance_type;
        if (hdr.asked.recirculate > 0) {
            hdr.asked.recirculate = hdr.asked.recirculate - 1;
            meta.rounds = meta.rounds + 1;
            meta.kept = meta.kept + 1;
            meta.lost = meta.lost + 1;
            recirculate_preserving_field_list(2);
        }
        hdr.asked.rounds = meta.rounds;
        hdr.asked.kept = meta.kept;
        hdr.asked.lost = meta.lost;
    }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.asked); } }
SWITCH
