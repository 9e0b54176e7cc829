/* SPDX-License-Identifier: Apache-2.0 */
/* An assertion in ingress and an assumption in egress. */
#include "include/common.p4"

header limits_t { bit<8> first; bit<8> second; bit<8> passed; }
struct headers_t { ethernet_t ethernet; limits_t limits; }
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.limits);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        assert(hdr.limits.first < 5);
        hdr.limits.passed = 1;
    }
}

EGRESS {
    apply {
        assume(hdr.limits.second < 5);
        hdr.limits.passed = hdr.limits.passed + 1;
    }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.limits); } }
SWITCH
