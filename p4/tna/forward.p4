// SPDX-License-Identifier: Apache-2.0
// As v1model/forward.p4.

#ifndef FORWARD_P4
#define FORWARD_P4

control Forward(in Headers hdr, in ingress_intrinsic_metadata_t arrival,
                inout ingress_intrinsic_metadata_for_deparser_t deparser,
                inout ingress_intrinsic_metadata_for_tm_t manager) {
    bit<48> destination;

    action send(PortId_t port) {
        manager.ucast_egress_port = port;
    }

    action flood(bit<16> group) {
        manager.mcast_grp_a = group + (bit<16>)arrival.ingress_port;
    }

    action discard() {
        deparser.drop_ctl = 1;
    }

    table forward {
        key = { destination: exact; }
        actions = { send; flood; discard; }
        default_action = discard();
        size = STATIONS;
    }

    apply {
        destination = hdr.ethernet.dst;
        if (hdr.ethernet.dst[40:40] == 1) {
            destination = EVERYBODY;
        }
        forward.apply();
        if (manager.ucast_egress_port == arrival.ingress_port) {
            deparser.drop_ctl = 1;
        }
    }
}

#endif
