// SPDX-License-Identifier: Apache-2.0
// By destination address.  All group addresses share the row of the broadcast address.

#ifndef FORWARD_P4
#define FORWARD_P4

control Forward(in Headers hdr, inout standard_metadata_t standard) {
    bit<48> destination;

    action send(bit<9> port) {
        standard.egress_spec = port;
    }

    // Multicast group `group` + n has all ports but n: nothing goes back where it came from.
    action flood(bit<16> group) {
        standard.mcast_grp = group + (bit<16>)standard.ingress_port;
    }

    action discard() {
        mark_to_drop(standard);
    }

    table forward {
        key = { destination: exact; }
        actions = { send; flood; discard; }
        default_action = discard();
        size = STATIONS;
    }

    apply {
        destination = hdr.ethernet.dst;
        if (destination & GROUP_ADDRESS != 0) {
            destination = EVERYBODY;
        }
        forward.apply();
        if (standard.egress_spec == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

#endif
