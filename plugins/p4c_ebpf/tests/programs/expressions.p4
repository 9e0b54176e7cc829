/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of expression: each result is written into a field of the packet. */
#include "include/common.p4"

header operands_t {
    bit<8> a;
    bit<8> b;
    int<8> c;
    int<8> d;
    bit<64> x;
    bit<64> y;
    bit<32> n;
    bit<5> p;
    bit<11> q;
}

header results_t {
    bit<8> sum;
    bit<8> difference;
    bit<8> product;
    bit<8> saturated_sum;
    bit<8> saturated_difference;
    int<8> signed_sum;
    int<8> signed_saturated;
    int<8> signed_low;
    int<8> shifted;
    bit<8> left;
    bit<8> right;
    bit<16> joined;
    bit<8> slice;
    bit<16> widened;
    int<16> extended;
    bit<8> chosen;
    bit<64> wide_sum;
    bit<64> wide_saturated;
    bit<64> wide_shift;
    bit<64> wide_product;
    bit<8> comparisons;
    bit<8> bits;
    bit<8> negated;
    bit<5> p;
    bit<11> q;
    bit<64> mixed;
    int<8> minus;
    bit<8> truth;
}

struct headers_t { ethernet_t ethernet; operands_t given; results_t result; }
struct metadata_t { bool flag; bit<1> one; }

PARSER {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.given);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        if (!hdr.given.isValid()) {
            exit;
        }
        hdr.result.setValid();
        hdr.result.comparisons = 0;
        hdr.result.sum = hdr.given.a + hdr.given.b;
        hdr.result.difference = hdr.given.a - hdr.given.b;
        hdr.result.product = hdr.given.a * hdr.given.b;
        hdr.result.saturated_sum = hdr.given.a |+| hdr.given.b;
        hdr.result.saturated_difference = hdr.given.a |-| hdr.given.b;
        hdr.result.signed_sum = hdr.given.c + hdr.given.d;
        hdr.result.signed_saturated = hdr.given.c |+| hdr.given.d;
        hdr.result.signed_low = hdr.given.c |-| hdr.given.d;
        hdr.result.shifted = hdr.given.c >> 2;
        hdr.result.left = hdr.given.a << hdr.given.b;
        hdr.result.right = hdr.given.a >> hdr.given.b;
        hdr.result.joined = hdr.given.a ++ hdr.given.b;
        hdr.result.slice = hdr.given.n[20:13];
        hdr.result.widened = (bit<16>)hdr.given.a;
        hdr.result.extended = (int<16>)hdr.given.c;
        hdr.result.chosen = hdr.given.a > hdr.given.b ? hdr.given.a : 8w7;
        hdr.result.wide_sum = hdr.given.x + hdr.given.y;
        hdr.result.wide_saturated = hdr.given.x |+| hdr.given.y;
        hdr.result.wide_shift = (hdr.given.x << 13) ^ (hdr.given.y >> 7);
        hdr.result.wide_product = hdr.given.x * hdr.given.y;
        if (hdr.given.c < hdr.given.d && hdr.given.a >= hdr.given.b || !(hdr.given.x == hdr.given.y)) {
            hdr.result.comparisons = 1;
        }
        if (hdr.given.x > hdr.given.y) {
            hdr.result.comparisons = hdr.result.comparisons | 2;
        }
        hdr.result.bits = (hdr.given.a & 0x3c) | (hdr.given.b ^ 0x81);
        hdr.result.negated = ~hdr.given.a;
        hdr.result.p = hdr.given.p + 1;
        hdr.result.q = hdr.given.q - 1;
        hdr.result.mixed = ((hdr.given.x & 0xffffffff) * 3 + (bit<64>)hdr.given.n) ^ ~hdr.given.y;
        hdr.result.minus = -hdr.given.d;
        meta.flag = hdr.given.a == 5;
        meta.one = (bit<1>)meta.flag;
        hdr.result.truth = (bit<8>)meta.one + (bit<8>)(bit<1>)(hdr.given.n != 0);
        hdr.given.n[15:8] = hdr.given.a;
        standard.egress_spec = 1;
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.given); packet.emit(hdr.result); } }
SWITCH
