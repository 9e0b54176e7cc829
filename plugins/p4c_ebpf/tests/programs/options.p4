/* SPDX-License-Identifier: Apache-2.0 */
/* Options of IPv4 and TCP: they stay, move, are removed or copied, and IPv4's checksum covers them. */
#include "include/common.p4"

const bit<8> REMOVE = 1;
const bit<8> COPY = 2;
const bit<8> COPY_FIELD = 3;
const bit<8> COMPARE = 4;

const bit<8> SAME = 1;
const bit<8> TOO_LONG = 2;
const bit<8> NO_BYTES = 3;
const bit<8> CUT = 4;

header order_t { bit<8> what; bit<8> result; }
header ipv4_options_t { varbit<320> data; }
header tcp_t {
    bit<16> src;
    bit<16> dst;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> words;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
    varbit<320> options;
}
header bytes_t { bit<16> bits; varbit<320> data; }
struct headers_t {
    ethernet_t ethernet;
    order_t order;
    ipv4_t ipv4;
    ipv4_options_t options;
    tcp_t tcp;
    bytes_t bytes;
    bytes_t copied;
}
struct metadata_t { }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.order);
        transition select(hdr.ethernet.kind) { TYPE_IPV4: ipv4; 0x88b5: bytes; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.words >= 5, error.HeaderTooShort);
        packet.extract(hdr.options, (bit<32>)(hdr.ipv4.words - 5) << 5);
        transition select(hdr.ipv4.protocol) { PROTOCOL_TCP: tcp; default: accept; }
    }
    state tcp {
        packet.extract(hdr.tcp, ((bit<32>)packet.lookahead<bit<104>>()[7:4] << 5) - 160);
        transition accept;
    }
    state bytes {
        packet.extract(hdr.bytes, (bit<32>)packet.lookahead<bit<16>>());
        transition select(hdr.order.what) { COMPARE: more; default: accept; }
    }
    state more {
        packet.extract(hdr.copied, (bit<32>)packet.lookahead<bit<16>>());
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.HeaderTooShort) {
            hdr.order.result = TOO_LONG;
        } else if (standard.parser_error == error.ParserInvalidArgument) {
            hdr.order.result = NO_BYTES;
        } else if (standard.parser_error == error.PacketTooShort) {
            hdr.order.result = CUT;
        }
        if (hdr.order.what == REMOVE) {
            hdr.ipv4.words = 5;
            hdr.options.setInvalid();
            hdr.bytes.setInvalid();
        } else if (hdr.order.what == COPY) {
            hdr.copied = hdr.bytes;
        } else if (hdr.order.what == COPY_FIELD) {
            hdr.copied.setValid();
            hdr.copied.bits = 7;
            hdr.copied.data = hdr.bytes.data;
        }
        if (hdr.copied.isValid() && hdr.copied == hdr.bytes) {
            hdr.order.result = SAME;
        }
    }
}

EMPTY_EGRESS

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), {
            hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.identification,
            hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst,
            hdr.options.data }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

DEPARSE {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.order);
        packet.emit(hdr.copied);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.tcp);
        packet.emit(hdr.bytes);
    }
}
SWITCH
