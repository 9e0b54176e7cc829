// SPDX-License-Identifier: Apache-2.0
// Checksums of what was changed: IPv4's over its header, TCP's from what the parser left over.

#ifndef DEPARSE_P4
#define DEPARSE_P4

control Deparse(packet_out packet, inout Headers hdr, in State meta) {
    Checksum() ipv4_checksum;
    Checksum() tcp_checksum;

    apply {
        if (meta.changed == 1) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
                hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst
            });
            hdr.tcp.checksum = tcp_checksum.update({
                hdr.tcp.data_offset, hdr.tcp.reserved, hdr.tcp.flags, meta.residual
            });
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

control IngressDeparse(packet_out packet, inout Headers hdr, in State meta,
                       in ingress_intrinsic_metadata_for_deparser_t deparser) {
    Deparse() deparse;

    apply {
        deparse.apply(packet, hdr, meta);
    }
}

control EgressDeparse(packet_out packet, inout Headers hdr, in State meta,
                      in egress_intrinsic_metadata_for_deparser_t deparser) {
    Deparse() deparse;

    apply {
        deparse.apply(packet, hdr, meta);
    }
}

#endif
