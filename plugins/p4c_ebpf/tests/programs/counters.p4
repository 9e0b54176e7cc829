/* SPDX-License-Identifier: Apache-2.0 */
/* Indirect counters at ingress and egress, a direct counter, an index beyond the end. */
#include "include/common.p4"

struct headers_t { ethernet_t ethernet; }
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    counter(8, CounterType.packets_and_bytes) port_in;
    direct_counter(CounterType.packets_and_bytes) rows;

    action send(bit<9> port) { standard.egress_spec = port; rows.count(); }
    action discard() { mark_to_drop(standard); }

    table forward {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; discard; }
        default_action = discard();
        counters = rows;
        size = 4;
    }

    apply {
        port_in.count((bit<32>)standard.ingress_port);
        forward.apply();
    }
}

EGRESS {
    counter(8, CounterType.packets) port_out;

    apply { port_out.count((bit<32>)standard.egress_port); }
}

EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); } }
SWITCH
