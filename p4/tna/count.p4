// SPDX-License-Identifier: Apache-2.0
// As v1model/count.p4, each register touched once a packet.

#ifndef COUNT_P4
#define COUNT_P4

control Count(in Headers hdr, inout State meta) {
    Register<bit<32>, flow_t>(FLOWS, 0) begins;
    Register<bit<32>, flow_t>(FLOWS, 0) highest;
    Register<bit<32>, flow_t>(FLOWS, 0) data_seen;
    Register<bit<32>, flow_t>(FLOWS, 0) first_seen;
    Register<bit<32>, flow_t>(FLOWS, 0) acks_seen;
    bit<32> begin;
    bit<32> high;
    bit<32> ahead;
    bit<1> syn;
    bit<1> fresh;

    // Both give the value from before.
    RegisterAction<bit<32>, flow_t, bit<32>>(begins) set_begin = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = value;
            value = meta.seq;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(begins) get_begin = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(highest) restart = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = meta.seq;
            value = meta.end;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(highest) advance = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = value;
            if ((int<32>)(meta.end - value) >= 0) {
                value = meta.end;
            }
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(data_seen) data_next = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = value + 1;
            now = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(data_seen) data_anew = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = (bit<32>)meta.kind & 1;
            now = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(first_seen) first_next = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = value + 1;
            now = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(first_seen) first_anew = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = (bit<32>)meta.kind & 1;
            now = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(acks_seen) ack_next = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = value + 1;
            now = value;
        }
    };

    RegisterAction<bit<32>, flow_t, bit<32>>(acks_seen) ack_anew = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = 0;
            now = 0;
        }
    };

    apply {
        fresh = 0;
        syn = hdr.tcp.flags[1:1];
        meta.seq = hdr.tcp.seq + (bit<32>)syn;
        meta.end = meta.seq + (bit<32>)meta.payload;
        if (syn == 1) {
            begin = set_begin.execute(meta.flow);
            if (begin != meta.seq) {
                fresh = 1;
                begin = meta.seq;
            }
        } else {
            begin = get_begin.execute(meta.flow);
        }
        meta.offset = meta.seq - begin;
        if (fresh == 1) {
            high = restart.execute(meta.flow);
            meta.ordinal = data_anew.execute(meta.flow);
            meta.first_ordinal = first_anew.execute(meta.flow);
            ack_anew.execute(meta.flow);
        } else if (meta.kind == KIND_DATA) {
            high = advance.execute(meta.flow);
            ahead = meta.seq - high;
            meta.ordinal = data_next.execute(meta.flow);
            if (ahead[31:31] == 0) {
                meta.first_ordinal = first_next.execute(meta.flow);
            }
        } else if (meta.kind == KIND_ACK) {
            meta.ordinal = ack_next.execute(meta.flow);
        }
    }
}

#endif
