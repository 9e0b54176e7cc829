// SPDX-License-Identifier: Apache-2.0
// The testbed's switch, for v1model: BMv2, and eBPF by the project's translator.
// TCP meets its fate here; everything else, and fragments, pass untouched.

#include <core.p4>
#include <v1model.p4>
#include "common/types.p4"
#include "common/headers.p4"
#include "common/checksum.p4"
#include "parse.p4"
#include "forward.p4"
#include "classify.p4"
#include "count.p4"
#include "fate.p4"
#include "loss.p4"
#include "ecn.p4"
#include "act.p4"
#include "counters.p4"
#include "deparse.p4"

control TestbedIngress(inout Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
    CountIn() count_in;
    Forward() forwarding;
    Classify() classification;
    Describe() description;
    CountFlow() count_flow;
    Count() counting;
    Fate() fates;
    Loss() losses;
    Reorder() reordering;
    DrawnChange(FATE_DUPLICATE) duplicating;
    DrawnChange(FATE_CORRUPT) corrupting;
    DrawnChange(FATE_CORRUPT_HEADER) corrupting_headers;
    DrawnChange(FATE_TRIM) trimming;
    Act() acting;
    Swap() swapping;

    apply {
        count_in.apply(standard);
        forwarding.apply(hdr, meta, standard);
        if (hdr.tcp.isValid() || hdr.udp.isValid()) {
            classification.apply(hdr, meta);
        }
        if (hdr.tcp.isValid()) {
            description.apply(hdr, meta);
        }
        if (meta.tap.flow != 0) {
            count_flow.apply(meta);
            if (hdr.tcp.isValid()) {
                counting.apply(meta);
                if (meta.tap.kind != KIND_OTHER) {
                    fates.apply(meta);
                    if (meta.tap.kind == KIND_DATA) {
                        losses.apply(meta);
                        reordering.apply(meta);
                        duplicating.apply(meta);
                        corrupting.apply(meta);
                        corrupting_headers.apply(meta);
                        trimming.apply(meta);
                    }
                    if (meta.fate != FATE_NONE) {
                        acting.apply(hdr, meta, standard);
                    }
                    if (meta.tap.kind == KIND_DATA) {
                        swapping.apply(meta);
                    }
                }
            }
        }
    }
}

control TestbedEgress(inout Headers hdr, inout Metadata meta, inout standard_metadata_t standard) {
    QueueMark() queue_mark;
    WriteEcn() write_ecn;
    CountOut() count_out;

    apply {
        if (hdr.tcp.isValid()) {
            if (meta.tap.ecn_out == ECN_ECT0 || meta.tap.ecn_out == ECN_ECT1) {
                queue_mark.apply(meta, standard);
            }
            if (meta.tap.ecn_out != meta.tap.ecn_in) {
                write_ecn.apply(hdr, meta);
            }
        }
        count_out.apply(standard);
    }
}

V1Switch(Parse(), Verify(), TestbedIngress(), TestbedEgress(), Update(), Deparse()) main;
