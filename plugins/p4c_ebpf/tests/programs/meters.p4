/* SPDX-License-Identifier: Apache-2.0 */
/* Meters of bytes and of packets by index, and a direct one; their colours are written to the packet. */
#include "include/common.p4"

header colours_t {
    bit<8> index;
    bit<8> bytes;
    bit<8> after;
    bit<8> packets;
    bit<8> direct;
}
struct headers_t { ethernet_t ethernet; colours_t colours; }
struct metadata_t { bit<8> row; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.colours);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    meter(4, MeterType.bytes) of_bytes;
    meter(4, MeterType.packets) of_packets;
    direct_meter<bit<8>>(MeterType.bytes) of_rows;
    action colour() { of_rows.read(meta.row); }
    table rows {
        key = { hdr.ethernet.dst: exact; }
        actions = { colour; NoAction; }
        size = 16;
        default_action = NoAction();
        meters = of_rows;
    }

    apply {
        standard.egress_spec = 3;
        hdr.colours.bytes = 9;
        of_bytes.execute_meter((bit<32>)hdr.colours.index, hdr.colours.bytes);
        hdr.colours.after = hdr.colours.bytes + 1;
        hdr.colours.packets = 9;
        of_packets.execute_meter((bit<32>)hdr.colours.index, hdr.colours.packets);
        meta.row = 9;
        rows.apply();
        hdr.colours.direct = meta.row;
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.colours); } }
SWITCH
