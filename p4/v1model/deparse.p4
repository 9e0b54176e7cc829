// SPDX-License-Identifier: Apache-2.0
// Checksums are right already (see WriteEcn and Act): what was changed has paid for it.

#ifndef DEPARSE_P4
#define DEPARSE_P4

control Verify(inout Headers hdr, inout Metadata meta) {
    apply { }
}

control Update(inout Headers hdr, inout Metadata meta) {
    apply { }
}

control Deparse(packet_out packet, in Headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

#endif
