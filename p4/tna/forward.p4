// SPDX-License-Identifier: Apache-2.0
// As v1model/forward.p4.

#ifndef FORWARD_P4
#define FORWARD_P4

control Forward(in Headers hdr, in State meta, in ingress_intrinsic_metadata_t arrival,
                inout ingress_intrinsic_metadata_for_deparser_t deparser,
                inout ingress_intrinsic_metadata_for_tm_t manager) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) first_step;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) other_step;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) second_step;
    bit<48> destination;
    bit<16> ways;
    bit<32> salt;
    bit<32> draw;
    bit<16> chosen;

    action send(PortId_t port) {
        manager.ucast_egress_port = port;
    }

    action spread(bit<16> group, bit<32> spread_salt) {
        ways = group;
        salt = spread_salt;
    }

    action flood(bit<16> group) {
        manager.mcast_grp_a = group + (bit<16>)arrival.ingress_port;
    }

    action discard() {
        deparser.drop_ctl = 1;
    }

    table forward {
        key = { destination: exact; }
        actions = { send; spread; flood; discard; }
        default_action = discard();
        size = STATIONS;
    }

    table member {
        key = {
            ways: exact @name("group");
            chosen: range @name("draw");
        }
        actions = { send; @defaultonly discard; }
        default_action = discard();
        size = MEMBERS;
    }

    apply {
        destination = hdr.ethernet.dst;
        if (hdr.ethernet.dst[40:40] == 1) {
            destination = EVERYBODY;
        }
        ways = 0;
        forward.apply();
        if (ways != 0) {
            if (hdr.ipv4.isValid()) {
                draw = first_step.get({ hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport });
            } else {
                draw = other_step.get({ hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, meta.sport, meta.dport });
            }
            draw = draw + salt;
            draw = second_step.get({ draw });
            chosen = draw[15:0];
            member.apply();
        }
        if (manager.ucast_egress_port == arrival.ingress_port) {
            deparser.drop_ctl = 1;
        }
    }
}

#endif
