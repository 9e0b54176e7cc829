// SPDX-License-Identifier: Apache-2.0
// Code points, sizes and the words that the stages hand to each other.

#ifndef TYPES_P4
#define TYPES_P4

typedef bit<16> flow_t;     // 0: nobody's packet
typedef bit<8>  kind_t;
typedef bit<8>  fate_t;
typedef bit<8>  ecn_t;

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<16> TYPE_VLAN = 0x8100;
const bit<8>  PROTOCOL_TCP = 6;
const bit<8>  PROTOCOL_UDP = 17;

const bit<48> GROUP_ADDRESS = 0x010000000000;   // the I/G bit: IEEE 802-2014, 8.2.2
const bit<48> EVERYBODY = 0xffffffffffff;

// RFC 3168, section 5
const ecn_t ECN_NOT_ECT = 0;
const ecn_t ECN_ECT1 = 1;
const ecn_t ECN_ECT0 = 2;
const ecn_t ECN_CE = 3;

// RFC 9293, section 3.1
const bit<8> TCP_FIN = 0x01;
const bit<8> TCP_SYN = 0x02;
const bit<8> TCP_RST = 0x04;
const bit<8> TCP_ECE = 0x40;

const kind_t KIND_OTHER = 0;
const kind_t KIND_DATA = 1;     // TCP with payload
const kind_t KIND_ACK = 2;      // TCP without payload, SYN, FIN and RST

const fate_t FATE_NONE = 0;
const fate_t FATE_DROP = 1;
const fate_t FATE_MARK = 2;     // CE, if the packet is ECN-capable
const fate_t FATE_DELAY = 3;    // sent later, while those behind it go on
const fate_t FATE_ECHO = 4;     // set ECE
const fate_t FATE_CLEAR = 5;    // CE back to ECT(0)
const fate_t FATE_LOSE = 6;
const fate_t FATE_REORDER = 11; // as delay, chosen at random
const fate_t FATE_DUPLICATE = 13;       // a second copy follows
const fate_t FATE_CORRUPT = 14;         // a bit of the payload is inverted
const fate_t FATE_CORRUPT_HEADER = 15;  // a bit of TCP's header is
const fate_t FATE_TRIM = 16;    // the payload is cut off
const fate_t FATE_SWAP = 17;    // exchanged with the next data packet of its flow

// What a target is asked to do beyond P4, in Tap.park; the lower bits are the place.
const bit<8> PARK_KEEP = 0x40;      // put the packet there, and send it behind the one that takes it
const bit<8> PARK_TAKE = 0x80;      // after this packet send what lies there

const bit<16> RANK_NONE = 0xffff;
const bit<9>  NOWHERE = 511;        // the port of dropped packets
const bit<16> TWICE = 512;          // multicast group TWICE + n has port n two times
const bit<32> BEHIND = 0x80000000;  // a - b at or above it: a is before b in sequence space

const int FLOWS = 4097;         // ids 1 to 4096: two for each of 2048 connections
const int PORTS = 512;          // all there are of a 9-bit port
const int STATIONS = 1024;      // MAC addresses
const int MEMBERS = 256;        // ports of groups of equal ways: searched one by one
const int WILDCARDS = 256;      // five-tuples that are not complete: searched one by one
const int PLACES = 64;          // for packets that are kept
const int RULES = 256;          // ranges of packets with a fate: searched one by one

// What the telemetry says of a packet.  What is not TCP has a flow and ECN at most.
struct Tap {
    flow_t  flow;
    kind_t  kind;
    fate_t  fate;           // what happened, not what was asked for
    bit<32> ordinal;        // among the packets of this kind and flow, from 1; every transmission
    bit<32> first_ordinal;  // among first transmissions of data; 0: not one
    bit<32> seq;
    bit<32> ack;
    bit<16> payload;        // bytes
    bit<16> window;
    bit<8>  flags;
    ecn_t   ecn_in;
    ecn_t   ecn_out;
    bit<8>  park;           // PARK_KEEP or PARK_TAKE, and a place; 0: neither.  Not on all targets, as the two below
    bit<32> hold_ns;        // how much later than its port would send it
    bit<16> flip_at;        // the byte of the frame whose lowest bit is inverted; 0: none
}

struct Metadata {
    Tap     tap;
    bit<16> sport;      // of TCP or UDP
    bit<16> dport;
    bit<32> segment;    // bytes of TCP: header and payload
    bit<32> offset;     // of the first byte of payload, from 0
    fate_t  fate;       // what a rule asks for
    bit<16> rank;       // of that rule: the lowest wins
    bit<32> hold_ns;    // of that rule, if it delays
}

#endif
