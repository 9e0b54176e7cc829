# SPDX-License-Identifier: Apache-2.0
"""The registry finds parameters by file name and refuses what is not whole."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from testctl_agent.params import registry
from testctl_agent.params.registry import RegistryError, load
from testctl_agent.spec.types import Choice

_WHOLE = """
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int
SPEC = ParamSpec(name="{name}", kind="{kind}", help="{help}", type=Int(0, 1){more})
def read(entity, name): return 0
def apply(entity, name, value): pass
def unavailable(entity, name): return ""
"""
_number = itertools.count()


def whole(kind: str, name: str, more: str = "", text: str = "a help") -> str:
    return _WHOLE.format(kind=kind, name=name, more=more, help=text)


def several(kind: str, *names: str) -> str:
    """A file of several parameters."""
    rows = "".join(f"ParamSpec(name={name!r}, kind={kind!r}, help='a help', type=Int(0, 1))," for name in names)
    return whole(kind, "x").replace("SPEC = ", "_x = ") + f"SPECS = [{rows}]\n"


def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> registry.Registry:
    package = f"members_{next(_number)}"
    for at, source in files.items():
        path = tmp_path / package / at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    return load(tmp_path / package, package)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"host/a.py": "x = 1"}, r"host/a\.py: has no SPEC = ParamSpec"),
        ({"host/a.py": whole("host", "b")}, r"host/a\.py: SPEC\.name is 'b', want the name of the file"),
        ({"host/a.py": whole("port", "a")}, r"host/a\.py: the kind of a is 'port', want 'host'"),
        ({"host/a.py": whole("host", "a", text="")}, r"host/a\.py: the help of a is empty"),
        (
            {
                "host/a.py": whole("host", "a")
                .replace("def apply", "def aply")
                .replace("def unavailable", "def missing")
            },
            r"host/a\.py: has no function apply, unavailable",
        ),
        (
            {"host/a.py": whole("host", "a", ', pattern="[a-z]"'), "host/b.py": whole("host", "b")},
            r"host/a\.py: duplicate: its pattern takes the name b",
        ),
        (
            {"host/a.py": whole("host", "a"), "host/b.py": several("host", "b", "a")},
            r"host/b\.py: duplicate of a in a\.py",
        ),
        ({"host/a.py": several("host", "b", "b")}, r"host/a\.py: duplicate of b in a\.py"),
        ({"host/a.py": several("port", "b")}, r"host/a\.py: the kind of b is 'port', want 'host'"),
        ({"host/a.py": several("host") + "SPECS = ['b']"}, r"host/a\.py: has no SPEC = ParamSpec"),
        (
            {"port/a.py": whole("port", "a"), "switch/a.py": whole("switch", "a")},
            r"params/port: duplicate of params/switch: a: a switch takes both",
        ),
    ],
)
def test_refuses_and_names_the_member(
    files: dict[str, str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RegistryError, match=complaint):
        put(tmp_path, monkeypatch, files)


def test_finds_files_and_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec_only = whole("flow", "size", ', role="flow"').split("def read")[0]
    found = put(
        tmp_path,
        monkeypatch,
        {
            "host/a.py": whole("host", "a"),
            "host/fam.py": whole("host", "fam", ', pattern="f[0-9]"'),
            "host/both.py": several("host", "z", "b"),
            "host/_helper.py": "x = 1",
            "flow/size.py": spec_only,
        },
    )
    assert {kind: list(names) for kind, names in found.specs().items()} == {
        "host": ["a", "b", "fam", "z"],
        "switch": [],
        "port": [],
        "flow": ["size"],
    }
    family = found.find("host", "f7")
    assert family is not None
    assert family.name == "fam"
    assert found.find("host", "f77") is None
    assert found.find("planet", "a") is None
    assert found.module("host", "z") is found.module("host", "b")
    assert found.module("host", "f7").unavailable is not None
    with pytest.raises(RegistryError, match="flow: no state parameter 'size'"):
        found.module("flow", "size")


def test_every_parameter_of_the_project_is_there() -> None:
    specs = registry.specs()
    htb = {f"htb_{word}" for word in ("rate", "burst", "buffer", "ecn_threshold", "mark")}
    others = {"kernel", "cc", "mtu", "tso", "gro", "gro_flush", "initcwnd", "sysctl"}
    assert htb | others <= specs["host"].keys()
    assert specs["port"].keys() >= {"rate", "delay", "buffer", "ecn_threshold"}
    assert specs["switch"].keys() >= {"mtu", "backend"}
    for kind, members in specs.items():
        for name, spec in members.items():
            assert all(
                earlier in members or (kind == "port" and earlier in specs["switch"]) for earlier in spec.after
            ), name


@pytest.mark.parametrize("name", ["tcp_ecn", "net.ipv4.tcp_ecn"])
def test_a_known_sysctl_has_its_own_type(name: str) -> None:
    spec = registry.find("host", name)
    assert spec is not None
    assert spec.name == name
    assert spec.type == Choice((0, 1, 2, 3, 4, 5))


def test_specs_are_cheap_to_import() -> None:
    script = (
        "import sys; from testctl_agent.params import registry; registry.specs();"
        "print([m for m in ('pyroute2', 'ctypes', 'grpc', 'subprocess', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
