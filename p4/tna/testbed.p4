// SPDX-License-Identifier: Apache-2.0
// The testbed's switch for Tofino (TNA): the program of v1model/testbed.p4, its tables under the same
// names.  It has passed the compiler's front end, and has not met hardware.
//
// What differs: ranges of the table `fate` come as ternary prefixes, thresholds of `ecn` in cells of 80
// bytes, and a packet that is cut short is dropped by the parser.

#include <core.p4>
#include <tna.p4>
#include "common/types.p4"
#include "common/headers.p4"
#include "state.p4"
#include "parse.p4"
#include "forward.p4"
#include "classify.p4"
#include "count.p4"
#include "fate.p4"
#include "loss.p4"
#include "act.p4"
#include "ecn.p4"
#include "counters.p4"
#include "deparse.p4"

control TestbedIngress(inout Headers hdr, inout State meta, in ingress_intrinsic_metadata_t port,
                       in ingress_intrinsic_metadata_from_parser_t parsed,
                       inout ingress_intrinsic_metadata_for_deparser_t deparser,
                       inout ingress_intrinsic_metadata_for_tm_t manager) {
    CountIn() count_in;
    Forward() forwarding;
    Classify() classification;
    Describe() description;
    CountFlow() count_flow;
    Count() counting;
    Fate() fates;
    Loss() losses;
    Act() acting;

    apply {
        count_in.apply(port);
        forwarding.apply(hdr, meta, port, deparser, manager);
        if (hdr.tcp.isValid() || hdr.udp.isValid()) {
            classification.apply(hdr, meta);
        }
        if (hdr.tcp.isValid()) {
            description.apply(hdr, meta);
        }
        if (meta.flow != 0) {
            count_flow.apply(meta);
            if (hdr.tcp.isValid()) {
                counting.apply(hdr, meta);
                if (meta.kind != KIND_OTHER) {
                    fates.apply(meta);
                    if (meta.kind == KIND_DATA) {
                        losses.apply(meta);
                    }
                    if (meta.fate != FATE_NONE) {
                        acting.apply(hdr, meta, deparser);
                    }
                }
            }
        }
    }
}

control TestbedEgress(inout Headers hdr, inout State meta, in egress_intrinsic_metadata_t port,
                       in egress_intrinsic_metadata_from_parser_t parsed,
                       inout egress_intrinsic_metadata_for_deparser_t deparser,
                       inout egress_intrinsic_metadata_for_output_port_t output) {
    QueueMark() queue_mark;
    CountOut() count_out;

    apply {
        if (hdr.tcp.isValid()) {
            queue_mark.apply(hdr, meta, port);
        }
        count_out.apply(port);
    }
}

Pipeline(IngressParse(), TestbedIngress(), IngressDeparse(), EgressParse(), TestbedEgress(), EgressDeparse()) pipe;

Switch(pipe) main;
