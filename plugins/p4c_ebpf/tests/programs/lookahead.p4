/* SPDX-License-Identifier: Apache-2.0 */
/* A parser that looks ahead, verifies, skips bytes and tells errors apart. */
#include "include/common.p4"

header option_t {
    bit<8> kind;
    bit<8> length;
}

header long_t {
    bit<8> kind;
    bit<8> length;
    bit<32> value;
}

error { BadLength }

struct headers_t { ethernet_t ethernet; option_t small; long_t large; }
struct metadata_t { bit<16> ahead; bit<4> nibble; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        meta.ahead = packet.lookahead<bit<16>>();
        meta.nibble = packet.lookahead<bit<4>>();
        transition select(packet.lookahead<bit<8>>()) {
            1: small;
            2: large;
            0xf0 &&& 0xf0: skip;
            default: accept;
        }
    }
    state small {
        packet.extract(hdr.small);
        transition accept;
    }
    state large {
        packet.extract(hdr.large);
        verify(hdr.large.length == 6, error.BadLength);
        transition select(hdr.large.value) {
            0 .. 15: small;
            default: accept;
        }
    }
    state skip {
        packet.advance(16);
        transition small;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        hdr.ethernet.src = (bit<48>)meta.ahead;
        hdr.ethernet.dst[3:0] = meta.nibble;
        if (standard.parser_error == error.PacketTooShort) {
            standard.egress_spec = 2;
        } else if (standard.parser_error == error.BadLength) {
            standard.egress_spec = 3;
        } else if (standard.parser_error != error.NoError) {
            standard.egress_spec = 4;
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.large); packet.emit(hdr.small); } }
SWITCH
