// SPDX-License-Identifier: Apache-2.0
// By destination address.  All group addresses share the row of the broadcast address.
// Where several ports lead there, each connection is given one of them by a hash of its five-tuple (ECMP, RFC 2992):
// a CRC, then one of its sum with the switch's salt, so that switches with other salts choose independently.
// Reference: testctl_agent/spec/ecmp.py.

#ifndef FORWARD_P4
#define FORWARD_P4

control Forward(in Headers hdr, in Metadata meta, inout standard_metadata_t standard) {
    bit<48> destination;
    bit<16> ways;
    bit<32> salt;
    bit<32> draw;
    bit<16> chosen;

    action send(bit<9> port) {
        standard.egress_spec = port;
    }

    // Group `group` of the table `member` has the ports.
    action spread(bit<16> group, bit<32> spread_salt) {
        ways = group;
        salt = spread_salt;
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
        if (destination & GROUP_ADDRESS != 0) {
            destination = EVERYBODY;
        }
        ways = 0;
        forward.apply();
        if (ways != 0) {
            if (hdr.ipv4.isValid()) {
                hash(draw, HashAlgorithm.crc32, 32w0,
                     { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, meta.sport, meta.dport }, 64w0x100000000);
            } else {
                hash(draw, HashAlgorithm.crc32, 32w0,
                     { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, meta.sport, meta.dport }, 64w0x100000000);
            }
            draw = draw + salt;
            hash(draw, HashAlgorithm.crc32, 32w0, { draw }, 64w0x100000000);
            chosen = (bit<16>)draw;
            member.apply();
        }
        if (standard.egress_spec == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

#endif
