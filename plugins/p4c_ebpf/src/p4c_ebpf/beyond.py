# SPDX-License-Identifier: Apache-2.0
"""What a program asks of eBPF that P4 has no word for, by fields of its metadata struct `tap`; and the way out.

hold_ns  the packet leaves so much later than its port would send it
park     keep the packet at a place, or send what is kept there after this packet (runtime/park.h)
flip_at  the byte of the frame whose lowest bit is inverted when it is sent; 0: none
"""

from __future__ import annotations

from collections.abc import Mapping

from p4c_ebpf.code import Code

HOLD, PARK, FLIP = "hold_ns", "park", "flip_at"
FATE = "fate"


class Beyond:
    """`fields`: the C of each of these that the program has, by its name, and of `fate`."""

    def __init__(self, tap: Mapping[str, str]) -> None:
        self.fields = {name: tap[name] for name in (HOLD, PARK, FLIP, FATE) if name in tap}

    @property
    def parks(self) -> bool:
        return PARK in self.fields

    @property
    def now(self) -> str:
        """When the packet comes to its port, which is not when it arrived if it was kept."""
        return "p->now_ns" if self.parks else "p->arrival_ns"

    def includes(self) -> str:
        return '#include "icmp.h"\n' + ('#include "park.h"\n' if self.parks else "")

    def held(self, code: Code) -> None:
        """After the port model."""
        if HOLD in self.fields:
            code.add(f"d.at_ns += {self.fields[HOLD]};")

    def sent(self, code: Code) -> None:
        """After the headers were written."""
        if FLIP in self.fields:
            at = self.fields[FLIP]
            with code.block(f"if ({at} && frame_flip(skb, {at}))"):
                code.add("report(p, port, TELEMETRY_ASTRAY, 0, d.depth_bytes);", "return 0;")

    def answer(self, behind: bool = False) -> str:
        """answer(): a packet that was too large for its link becomes ICMP's answer, and leaves where it came in."""
        own = "\tp->own = 1;\n\tp->hold_ns = 0;\n" if behind else ""
        return """\
/* The answer to a packet that was too large for its link. */
static __noinline int answer(struct __sk_buff *skb, struct packet *p)
{
	u32 port = p->ingress, mtu = p->too_large, ifindex;

	p->too_large = 0;
	if (!port || icmp_too_large(skb, mtu))
		return TC_ACT_SHOT;
	__builtin_memset(&p->m, 0, sizeof(p->m));
	p->valid = 0;
	p->dirty = 0;
	p->relayout = 0;
	p->wire_bytes = skb->len;
OWN	ifindex = depart(skb, p, port);
	return ifindex ? send_away(skb, port, ifindex, p->waits) : TC_ACT_SHOT;
}

""".replace("OWN", own)

    def route(self, group: str, port: str, drop_port: int) -> str:
        """route(): as the end of switch_ingress, but the packet's bytes stay for another one."""
        if not self.parks:
            return ""
        code = Code(1)
        code.add("u32 port, ifindex;", "")
        with code.block(f"if ({group})"):
            code.add(f"return flood(skb, p, {group});")
        code.add(f"port = {port};")
        with code.block(f"if (port == {drop_port})"):
            code.add("report(p, 0, TELEMETRY_DROPPED, 0, 0);", "return 0;")
        code.add("ifindex = depart(skb, p, port);", "if (ifindex)", "\tsend_copy(skb, port, ifindex);", "return 0;")
        return f"static __noinline int route(struct __sk_buff *skb, struct packet *p)\n{{\n{code.text()}}}\n\n"

    def parked(self, code: Code) -> None:
        """Before the packet goes out."""
        if not self.parks:
            return
        park = self.fields[PARK]
        with code.block(f"if (needed[NEEDS_PARKS] && {park} & PARK_KEEP)"):
            code.add(f"if (!park_keep(skb, p, {park} & (PARK_PLACES - 1)))", "\treturn TC_ACT_SHOT;", f"{park} = 0;")
            if FATE in self.fields:
                code.add(f"{self.fields[FATE]} = 0;")
        with code.block(f"if (needed[NEEDS_PARKS] && {park} & PARK_TAKE)"):
            code.add(f"u32 place = {park} & (PARK_PLACES - 1);", "", "route(skb, p);")
            code.add("if (!park_take(skb, p, place))", "\troute(skb, p);", "return TC_ACT_SHOT;")
