/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by group; every copy's egress rewrites it by its port, and one port drops its copy. */
#include "include/common.p4"

struct headers_t { ethernet_t ethernet; }
struct metadata_t { bit<8> count; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        meta.count = 1;
        standard.egress_spec = 4;
        standard.mcast_grp = hdr.ethernet.kind;
    }
}

EGRESS {
    apply {
        meta.count = meta.count + 1;
        hdr.ethernet.src = (bit<48>)standard.egress_port;
        hdr.ethernet.dst = (bit<48>)meta.count;
        if (standard.instance_type == 5) {
            hdr.ethernet.kind = 0x5555;
        }
        if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); } }
SWITCH
