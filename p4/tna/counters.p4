// SPDX-License-Identifier: Apache-2.0
// As v1model/counters.p4.

#ifndef COUNTERS_P4
#define COUNTERS_P4

control CountIn(in ingress_intrinsic_metadata_t port) {
    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) port_in;

    apply {
        port_in.count(port.ingress_port);
    }
}

control CountOut(in egress_intrinsic_metadata_t port) {
    Counter<bit<64>, PortId_t>(PORTS, CounterType_t.PACKETS_AND_BYTES) port_out;

    apply {
        port_out.count(port.egress_port);
    }
}

control CountFlow(in State meta) {
    Counter<bit<64>, flow_t>(FLOWS, CounterType_t.PACKETS_AND_BYTES) flow_packets;

    apply {
        flow_packets.count(meta.flow);
    }
}

#endif
