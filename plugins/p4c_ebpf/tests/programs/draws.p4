/* SPDX-License-Identifier: Apache-2.0 */
/* Puts random numbers into packets: of a small range, of one number, of all. */
#include "include/common.p4"

header drawn_t {
    bit<8> small;
    bit<8> one;
    bit<16> some;
    bit<32> any;
}

struct headers_t { ethernet_t ethernet; drawn_t drawn; }
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.drawn);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 2;
        random(hdr.drawn.small, 3, 5);
        random(hdr.drawn.one, 7, 7);
        random(hdr.drawn.some, 1000, 1999);
        random(hdr.drawn.any, 0, 0xffffffff);
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.drawn); } }
SWITCH
