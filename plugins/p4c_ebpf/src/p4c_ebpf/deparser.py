# SPDX-License-Identifier: Apache-2.0
"""The deparser and the checksums: headers are written back where they changed, and moved if their layout did."""

from __future__ import annotations

from p4c_ebpf import fields
from p4c_ebpf.actions import Statements
from p4c_ebpf.code import Code
from p4c_ebpf.document import Node, unwrap
from p4c_ebpf.expression import Scope
from p4c_ebpf.hashes import WIDTHS, Hashes, algorithm
from p4c_ebpf.model import Header, Program


class Deparser:
    """`order`: the headers that may be emitted, one after the other."""

    def __init__(self, program: Program, hashes: Hashes, root: Node) -> None:
        self.program, self.hashes, self.root = program, hashes, root
        (found,) = root["deparsers"]
        for one in found.section("primitives"):
            one.cannot("statements in the deparser")
        self.order: list[Header] = []
        for one in found["order"]:
            header = program.header(one)
            if header.metadata or header in self.order:
                one.cannot(f"emitting {header.name} twice, or metadata")
            self.order.append(header)

    def functions(self) -> str:
        """header_bytes() and deparse(): without a branch for a header but where its bytes are written."""
        real = [header for header in self.order if header.bytes + header.extra]
        size = Code(1)
        size.add("u32 bytes = 0;", "")
        for header in real:
            more = f" + {header.length}" if header.extra else ""
            size.add(f"bytes += is_valid(p, {header.bit}) * {header.bytes}{more};")
        size.add("return bytes;")
        code = Code(1)
        code.add("u32 to = 0;", "")
        with code.block("if (RELAYOUT && p->relayout)"):
            code.add("u32 want = header_bytes(p);", "")
            code.add("if (want != p->headers && frame_resize(skb, p, want))", "\treturn -1;")
            code.add("p->headers = want;", "p->dirty = ~0ULL;")
        code.add("if (!p->dirty)", "\treturn 0;")
        for header in real:
            if not header.bytes:
                self._variable(code, header)
                continue
            code.add(
                f"if (is_valid(p, {header.bit}) && p->dirty & {header.mask} && "
                f"bpf_skb_store_bytes(skb, to, p->head + {header.base}, {header.bytes}, BPF_F_RECOMPUTE_CSUM))",
                "\treturn -1;",
                f"to += is_valid(p, {header.bit}) * {header.bytes};",
            )
            if header.extra:
                self._variable(code, header)
        code.add("return 0;")
        return (
            "/* Bytes of all headers that will be emitted. */\n"
            f"static __noinline u32 header_bytes(struct packet *p)\n{{\n{size.text()}}}\n\n"
            "/* Write the headers into the packet; not 0: they don't fit, and the packet is lost. */\n"
            f"static __noinline int deparse(struct __sk_buff *skb, struct packet *p)\n{{\n{code.text()}}}\n\n"
        )

    def _variable(self, code: Code, header: Header) -> None:
        """The varbit; it has no bytes where the header is not valid."""
        store = (
            f"bpf_skb_store_bytes(skb, to, p->head + {header.base + header.bytes}, "
            f"at_most({header.length}, {header.bound}), BPF_F_RECOMPUTE_CSUM)"
        )
        code.add(
            f"if ({header.length} && p->dirty & {header.mask} && {store})", "\treturn -1;", f"to += {header.length};"
        )

    def checksums(self, code: Code, update: bool) -> None:
        """Verify (the result is standard_metadata.checksum_error) or update all checksums."""
        scope = Scope(self.program)
        for one in self.root["checksums"]:
            wanted = one["update"].flag() if one.has("update") else True
            verified = one["verify"].flag() if one.has("verify") else True
            if not (wanted if update else verified):
                continue
            name = one["calculation"].text()
            if name not in self.program.calculations:
                one.fail(f"no calculation {name!r}")
            calculation = self.program.calculations[name]
            field = self.program.field(one["target"])
            header = self.program.headers[field.header]
            if field.width > 64:
                one.cannot("a checksum of more than 64 bits")
            tests = [] if header.metadata else [f"(p->valid & {header.mask})"]
            if one.has("if_cond"):
                condition = unwrap(one["if_cond"])
                if scope.truth(condition) != "1":
                    tests.append(scope.truth(condition))
            with code.block(f"if ({' && '.join(tests) or '1'})"):
                code.add("u64 h;", "")
                self.hashes.emit(code, scope, calculation, "h")
                bits = min(field.width, WIDTHS[algorithm(calculation)])
                if update:
                    if field.width < WIDTHS[algorithm(calculation)]:
                        code.add(f"h &= {fields.ones(bits)};")
                    with code.block(f"if (h != {fields.load(field, header)})"):
                        Statements(self.program, code, self.hashes, scope).put(field, header, "h", clean=True)
                else:
                    used = self.program.standard("checksum_error")
                    assert used is not None
                    code.add(f"if (h != {fields.load(field, header)})", f"\tp->m.{used.member} = 1;")
