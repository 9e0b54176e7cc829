/* SPDX-License-Identifier: Apache-2.0 */
/* Clones by order of the packet, of its ingress (session 5) and of its egress (6); egress reports what each has. */
#include "include/common.p4"

const bit<8> PLAIN = 1;
const bit<8> WITH_METADATA = 2;
const bit<32> REPLICATION = 5;

header order_t { bit<8> ingress; bit<8> egress; bit<8> group; bit<8> drop; }
header report_t { bit<8> kept; bit<8> lost; bit<8> type; bit<8> instance; }
header number_t { bit<32> value; }
struct headers_t { order_t order; report_t report; number_t number; number_t removed; }
struct metadata_t { @field_list(4) bit<8> kept; bit<8> lost; }

PARSER {
    state start {
        packet.extract(hdr.order);
        packet.extract(hdr.report);
        packet.extract(hdr.number);
        packet.extract(hdr.removed);
        transition accept;
    }
}
EMPTY_VERIFY

INGRESS {
    apply {
        standard.egress_spec = 1;
        meta.kept = 77;
        meta.lost = 66;
        if (hdr.order.ingress == PLAIN) {
            clone(CloneType.I2E, 5);
        } else if (hdr.order.ingress == WITH_METADATA) {
            clone_preserving_field_list(CloneType.I2E, 5, 4);
        }
        standard.mcast_grp = (bit<16>)hdr.order.group;
        hdr.number.value = hdr.number.value + 0x100;
        hdr.removed.setInvalid();
    }
}

EGRESS {
    apply {
        if (hdr.order.drop != 0 && standard.instance_type == REPLICATION) {
            mark_to_drop(standard);
        }
        if (hdr.order.egress == PLAIN) {
            clone(CloneType.E2E, 6);
        } else if (hdr.order.egress == WITH_METADATA) {
            clone_preserving_field_list(CloneType.E2E, 6, 4);
        }
        hdr.report.kept = meta.kept;
        hdr.report.lost = meta.lost;
        hdr.report.type = (bit<8>)standard.instance_type;
        hdr.report.instance = (bit<8>)standard.egress_rid;
        hdr.number.value = hdr.number.value + 1;
    }
}

EMPTY_UPDATE
DEPARSE {
    apply {
        packet.emit(hdr.order);
        packet.emit(hdr.report);
        packet.emit(hdr.number);
        packet.emit(hdr.removed);
    }
}
SWITCH
