// SPDX-License-Identifier: Apache-2.0
// What the stages hand to each other on Tofino.  There is no telemetry but counters: no Tap.

#ifndef STATE_P4
#define STATE_P4

struct State {
    flow_t  flow;
    kind_t  kind;
    bit<32> ordinal;
    bit<32> first_ordinal;
    bit<32> seq;            // of the first byte of data
    bit<32> end;
    bit<32> offset;
    bit<16> sport;
    bit<16> dport;
    bit<16> segment;        // bytes of TCP: header and payload
    bit<16> header_bytes;   // 0: the data offset is below 5
    bit<16> payload;
    fate_t  fate;
    bit<16> rank;
    bit<16> residual;       // checksum of TCP without its flags
    bit<1>  changed;        // checksums are due
}

#endif
