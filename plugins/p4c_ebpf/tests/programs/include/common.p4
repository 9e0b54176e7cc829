/* SPDX-License-Identifier: Apache-2.0 */
/* Headers that the programs share, and the parts that most of them leave empty. */
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_MPLS = 0x8847;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> kind;
}

header vlan_t {
    bit<3> priority;
    bit<1> eligible;
    bit<12> id;
    bit<16> kind;
}

header ipv4_t {
    bit<4> version;
    bit<4> words;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv6_t {
    bit<4> version;
    bit<8> class;
    bit<20> label;
    bit<16> length;
    bit<8> next;
    bit<8> hops;
    bit<128> src;
    bit<128> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

#define EMPTY_VERIFY control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
#define EMPTY_UPDATE control Update(inout headers_t hdr, inout metadata_t meta) { apply { } }
#define EMPTY_EGRESS \
    control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
#define SWITCH V1Switch(P(), Verify(), ingress(), egress(), Update(), Deparse()) main;

#define PARSER parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard)
#define INGRESS control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard)
#define EGRESS control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard)
#define DEPARSE control Deparse(packet_out packet, in headers_t hdr)

#define PARSE_ETHERNET_IPV4_PORTS \
    state start { \
        packet.extract(hdr.ethernet); \
        transition select(hdr.ethernet.kind) { TYPE_IPV4: ipv4; default: accept; } \
    } \
    state ipv4 { \
        packet.extract(hdr.ipv4); \
        transition select(hdr.ipv4.protocol, hdr.ipv4.words) { \
            (PROTOCOL_TCP, 5): ports; \
            (PROTOCOL_UDP, 5): ports; \
            default: accept; \
        } \
    } \
    state ports { \
        packet.extract(hdr.ports); \
        transition accept; \
    }

#define HEADERS_ETHERNET_IPV4_PORTS struct headers_t { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; }
#define EMIT_ETHERNET_IPV4_PORTS \
    DEPARSE { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); packet.emit(hdr.ports); } }
#define IPV4_CHECKSUM_FIELDS { \
    hdr.ipv4.version, hdr.ipv4.words, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, hdr.ipv4.identification, \
    hdr.ipv4.flags, hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }
