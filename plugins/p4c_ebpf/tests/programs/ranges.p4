/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of UDP and TCP by range, with an exact field and without; hit and miss. */
#include "include/common.p4"

HEADERS_ETHERNET_IPV4_PORTS
struct metadata_t { }

PARSER { PARSE_ETHERNET_IPV4_PORTS }
EMPTY_VERIFY

INGRESS {
    action send(bit<9> port) { standard.egress_spec = port; }
    action mark(bit<6> dscp) { hdr.ipv4.dscp = dscp; }

    table by_protocol {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ports.src: range;
            hdr.ports.dst: range;
        }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    table by_length {
        key = {
            hdr.ipv4.length: range;
            hdr.ipv4.src: ternary;
        }
        actions = { mark; NoAction; }
        default_action = NoAction();
        size = 8;
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.ports.isValid()) {
            if (by_protocol.apply().hit) {
                by_length.apply();
            } else {
                hdr.ports.dst = 9;
            }
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
EMIT_ETHERNET_IPV4_PORTS
SWITCH
