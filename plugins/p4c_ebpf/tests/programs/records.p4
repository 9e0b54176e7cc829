/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of headers of variable length, and a field wider than any number: extracted, moved, copied, emitted. */
#include "include/common.p4"

const bit<8> PUSH = 1;
const bit<8> POP = 2;
const bit<8> COPY = 3;
const bit<8> CHANGE = 4;

header order_t { bit<8> what; bit<8> records; bit<16> which; bit<8> kind; bit<8> row; }
header wide_t { bit<336> data; bit<8> last; }
header record_t { bit<8> kind; bit<8> bytes; varbit<96> data; }
struct headers_t { order_t order; wide_t wide; wide_t copied; record_t[3] records; }
struct metadata_t { bit<8> left; }

PARSER {
    state start {
        packet.extract(hdr.order);
        packet.extract(hdr.wide);
        meta.left = hdr.order.records;
        transition select(meta.left) { 0: accept; default: record; }
    }
    state record {
        packet.extract(hdr.records.next, (bit<32>)packet.lookahead<bit<16>>()[7:0] << 3);
        meta.left = meta.left - 1;
        transition select(meta.left) { 0: accept; default: record; }
    }
}
EMPTY_VERIFY

INGRESS {
    action found(bit<8> row) { hdr.order.row = row; }
    table rows {
        key = { hdr.records[hdr.order.which].kind: exact; hdr.records[hdr.order.which].isValid(): exact; }
        actions = { found; NoAction; }
        size = 8;
        default_action = NoAction();
    }

    apply {
        standard.egress_spec = 1;
        if (hdr.order.what == PUSH) {
            hdr.records.push_front(1);
            hdr.records[0].setValid();
            hdr.records[0].kind = 9;
        } else if (hdr.order.what == POP) {
            hdr.records.pop_front(1);
        } else if (hdr.order.what == COPY) {
            hdr.copied = hdr.wide;
            hdr.records[0] = hdr.records[2];
        } else if (hdr.order.what == CHANGE) {
            hdr.records[hdr.order.which].kind = 7;
        }
        rows.apply();
        hdr.order.kind = hdr.records[hdr.order.which].kind;
        if (hdr.records[hdr.order.which].isValid()) {
            hdr.order.kind = hdr.order.kind + 0x80;
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE {
    apply {
        packet.emit(hdr.order);
        packet.emit(hdr.wide);
        packet.emit(hdr.copied);
        packet.emit(hdr.records);
    }
}
SWITCH
