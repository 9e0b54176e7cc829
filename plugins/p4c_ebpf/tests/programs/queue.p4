/* SPDX-License-Identifier: Apache-2.0 */
/* What the queue tells egress: a mark where it is deep, its depth and times in the packet. */
#include "include/common.p4"

header seen_t {
    bit<32> depth;
    bit<32> after;
    bit<32> wait_us;
    bit<32> length;
}

struct headers_t { ethernet_t ethernet; seen_t seen; }
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.seen);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS { apply { standard.egress_spec = 2; } }

EGRESS {
    apply {
        hdr.seen.depth = (bit<32>)standard.enq_qdepth;
        hdr.seen.after = (bit<32>)standard.deq_qdepth;
        hdr.seen.wait_us = standard.deq_timedelta;
        hdr.seen.length = standard.packet_length;
        if (standard.enq_qdepth >= 3000) {
            hdr.ethernet.kind = 0xcece;
        }
    }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.seen); } }
SWITCH
