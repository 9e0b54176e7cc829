/* SPDX-License-Identifier: Apache-2.0 */
/* Counts packets per flow, keeps an average that forgets, and sends every third packet elsewhere. */
#include "include/common.p4"

HEADERS_ETHERNET_IPV4_PORTS
struct metadata_t { bit<32> seen; bit<32> average; }

PARSER { PARSE_ETHERNET_IPV4_PORTS }
EMPTY_VERIFY

INGRESS {
    register<bit<32>>(16) seen;
    register<bit<32>>(16) average;
    register<bit<48>>(1) wide;
    register<int<8>>(4) signed;

    apply {
        if (!hdr.ports.isValid()) {
            exit;
        }
        bit<32> flow = (bit<32>)hdr.ports.src & 0x1f;
        seen.read(meta.seen, flow);
        meta.seen = meta.seen + 1;
        seen.write(flow, meta.seen);

        /* average += (length - average) / 4, in 1/16 */
        average.read(meta.average, flow);
        bit<32> now = (bit<32>)hdr.ipv4.length << 4;
        meta.average = meta.average - (meta.average >> 2) + (now >> 2);
        average.write(flow, meta.average);
        hdr.ipv4.identification = (bit<16>)(meta.average >> 4);

        bit<48> sum;
        wide.read(sum, 0);
        wide.write(0, sum + hdr.ethernet.src);

        int<8> last;
        signed.read(last, 1);
        last = last - 100;
        signed.write(1, last);
        if (last < 0) {
            hdr.ipv4.flags = 1;
        }

        standard.egress_spec = 1;
        if (meta.seen == 3) {
            standard.egress_spec = 2;
            seen.write(flow, 0);
        }
    }
}

EMPTY_EGRESS
EMPTY_UPDATE
EMIT_ETHERNET_IPV4_PORTS
SWITCH
