/* SPDX-License-Identifier: Apache-2.0 */
/* Header unions: one address of two kinds, and a stack of items of two sizes; ingress changes them by order. */
#include "include/common.p4"

const bit<8> SHORTEN = 1;
const bit<8> LENGTHEN = 2;
const bit<8> REMOVE = 3;
const bit<8> REMOVE_OTHER = 4;
const bit<8> COPY = 5;
const bit<8> COPY_NOTHING = 6;
const bit<8> CHANGE_ITEM = 7;

const bit<8> SHORT = 4;
const bit<8> LONG = 6;
const bit<8> BOTH = 10;

header order_t { bit<8> what; bit<8> kind; bit<8> items; bit<8> valid; }
header short_t { bit<32> value; }
header long_t { bit<64> value; bit<8> more; }
header_union address_t { short_t short; long_t long; }
header byte_t { bit<8> kind; bit<8> value; }
header word_t { bit<8> kind; bit<16> value; }
header_union item_t { byte_t byte; word_t word; }
struct headers_t { order_t order; address_t address; address_t copied; short_t nothing; item_t[3] items; }
struct metadata_t { bit<8> left; }

PARSER {
    state start {
        packet.extract(hdr.order);
        meta.left = hdr.order.items;
        transition select(hdr.order.kind) { SHORT: short; LONG: long; BOTH: both; default: items; }
    }
    state short {
        packet.extract(hdr.address.short);
        transition items;
    }
    state long {
        packet.extract(hdr.address.long);
        transition items;
    }
    state both {
        packet.extract(hdr.address.short);
        packet.extract(hdr.address.long);
        transition items;
    }
    state items {
        transition select(meta.left) { 0: accept; default: item; }
    }
    state item {
        meta.left = meta.left - 1;
        transition select(packet.lookahead<bit<8>>()) { 1: byte; 2: word; default: accept; }
    }
    state byte {
        packet.extract(hdr.items.next.byte);
        transition items;
    }
    state word {
        packet.extract(hdr.items.next.word);
        transition items;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        if (hdr.order.what == SHORTEN) {
            hdr.address.short.setValid();
            hdr.address.short.value = 0x01020304;
        } else if (hdr.order.what == LENGTHEN) {
            hdr.address.long.setValid();
            hdr.address.long.more = 5;
        } else if (hdr.order.what == REMOVE) {
            hdr.address.short.setInvalid();
            hdr.address.long.setInvalid();
        } else if (hdr.order.what == REMOVE_OTHER) {
            hdr.address.short.setInvalid();
        } else if (hdr.order.what == COPY) {
            hdr.copied = hdr.address;
        } else if (hdr.order.what == COPY_NOTHING) {
            hdr.address.short = hdr.nothing;
        } else if (hdr.order.what == CHANGE_ITEM) {
            if (hdr.items[1].byte.isValid()) {
                hdr.items[1].word.setValid();
                hdr.items[1].word.kind = 2;
                hdr.items[1].word.value = 0x0708;
            }
            hdr.items[0].byte.value = 9;
        }
        hdr.order.valid = 0;
        if (hdr.address.isValid()) {
            hdr.order.valid = 1;
        }
        if (hdr.address.short.isValid()) {
            hdr.order.valid = hdr.order.valid + 2;
        }
        if (hdr.address.long.isValid()) {
            hdr.order.valid = hdr.order.valid + 4;
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE {
    apply {
        packet.emit(hdr.order);
        packet.emit(hdr.address);
        packet.emit(hdr.copied);
        packet.emit(hdr.items);
    }
}
SWITCH
