/* SPDX-License-Identifier: Apache-2.0 */
/* IPv6 with keys of 128 bits: longest prefix, exact and ternary; addresses are swapped and compared. */
#include "include/common.p4"

struct headers_t { ethernet_t ethernet; ipv6_t ipv6; }
struct metadata_t { bit<128> kept; bit<64> half; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { TYPE_IPV6: ipv6; default: accept; }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    action to(bit<9> port) { standard.egress_spec = port; }
    action rewrite(bit<128> address) { hdr.ipv6.dst = address; }
    action mark(bit<8> class) { hdr.ipv6.class = class; }

    table routes {
        key = { hdr.ipv6.dst: lpm; }
        actions = { to; NoAction; }
        default_action = NoAction();
        size = 256;
    }

    table hosts {
        key = { hdr.ipv6.src: exact; hdr.ipv6.next: exact; }
        actions = { rewrite; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    table classes {
        key = { hdr.ipv6.src: ternary; hdr.ipv6.label: ternary; }
        actions = { mark; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        mark_to_drop(standard);
        if (hdr.ipv6.isValid()) {
            hosts.apply();
            classes.apply();
            routes.apply();
            meta.half = hdr.ipv6.dst[95:32];
            if (hdr.ipv6.src == hdr.ipv6.dst) {
                standard.egress_spec = 9;
            } else if (hdr.ipv6.src > hdr.ipv6.dst) {
                meta.kept = hdr.ipv6.src;
                hdr.ipv6.src = hdr.ipv6.dst;
                hdr.ipv6.dst = meta.kept;
            }
            hdr.ethernet.src = meta.half[47:0];
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv6); } }
SWITCH
