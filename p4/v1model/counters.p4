// SPDX-License-Identifier: Apache-2.0
// What came in and went out, by port; packets by flow.

#ifndef COUNTERS_P4
#define COUNTERS_P4

control CountIn(in standard_metadata_t standard) {
    counter(PORTS, CounterType.packets_and_bytes) port_in;

    apply {
        port_in.count((bit<32>)standard.ingress_port);
    }
}

control CountOut(in standard_metadata_t standard) {
    counter(PORTS, CounterType.packets_and_bytes) port_out;

    apply {
        port_out.count((bit<32>)standard.egress_port);
    }
}

control CountFlow(in Metadata meta) {
    counter(FLOWS, CounterType.packets_and_bytes) flow_packets;

    apply {
        flow_packets.count((bit<32>)meta.tap.flow);
    }
}

#endif
