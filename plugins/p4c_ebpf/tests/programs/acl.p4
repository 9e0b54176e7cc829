/* SPDX-License-Identifier: Apache-2.0 */
/* A ternary access list with priorities, a table of constant rows, actions chosen by action_run. */
#include "include/common.p4"

HEADERS_ETHERNET_IPV4_PORTS
struct metadata_t { bit<8> class; }

PARSER { PARSE_ETHERNET_IPV4_PORTS }
EMPTY_VERIFY

INGRESS {
    action allow() { }
    action deny() { }
    action classify(bit<8> class) { meta.class = class; }

    table classes {
        key = { hdr.ports.dst: ternary; }
        actions = { classify; }
        const default_action = classify(0);
        const entries = {
            80: classify(1);
            8080 &&& 0xfff0: classify(2);
            _: classify(3);
        }
    }

    table rules {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.isValid(): exact;
        }
        actions = { allow; deny; }
        default_action = deny();
        size = 32;
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.ports.isValid()) {
            classes.apply();
        }
        switch (rules.apply().action_run) {
            allow: { standard.egress_spec = 2 + (bit<9>)meta.class; }
            deny: { mark_to_drop(standard); }
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
EMIT_ETHERNET_IPV4_PORTS
SWITCH
