# SPDX-License-Identifier: Apache-2.0
"""`testctl plan`: the words of a plan are printed as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Call = Callable[..., tuple[int, str, str]]


def test_nothing_is_left_out_or_cut(tmp_path: Path, command: Call) -> None:
    (tmp_path / "p.yaml").write_text(f"""about: what [/b] does [rfc 5681]
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [bulk, generator, command]
  - [bulk, client, "curl http://{"a" * 90}/[x]"]
  - [bulk, server, "true"]
  - [switch:receiver, rate, 1mbit]
expect: [{{name: "fast [a]", metric: throughput_bps, min: 1}}]
figures: [{{title: "Rate [b]"}}]
""")
    code, out, _ = command("plan", str(tmp_path / "p.yaml"))
    assert code == 0
    assert out.startswith("p: what [/b] does [rfc 5681]\n")
    assert "expects: fast [a]\nfigures: Rate [b]\n" in out
    assert f"http://{'a' * 90}/[x]" in "".join(line.strip() for line in out.splitlines())
