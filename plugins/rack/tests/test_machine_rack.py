# SPDX-License-Identifier: Apache-2.0
"""Racks of machines before any machine is started: what they consist of, their time server, what is refused and why."""

from __future__ import annotations

import shutil
import socket
import struct
from collections import namedtuple
from datetime import UTC, datetime
from pathlib import Path

import pytest
from machine_rack import disk, image, network, ntp, qemu, rack
from machine_rack.plan import MachineRack, load, plan
from testctl_agent.spec.errors import PlanError, TestbedError

Usage = namedtuple("Usage", "total used free")
KINDS = {"alpha": "host", "beta": "host", "s1": "switch"}


def planned(state: Path = Path("/t/state"), **changes: float) -> MachineRack:
    return plan(state, 2, Path("/image"), "tcg", clocks=changes)


def test_every_cable_has_two_ends() -> None:
    found = planned()
    assert {one.name: one.kind for one in found.machines} == KINDS
    ends = {f"{one.name}-{nic.device}": nic.peer for one in found.machines for nic in one.nics if nic.peer}
    assert {ends[ends[end]] for end in ends} == set(ends)
    macs = [nic.mac for one in found.machines for nic in one.nics]
    assert len(set(macs)) == len(macs)


def test_a_rack_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = planned(tmp_path, beta=3.5)
    found.save()
    assert load(tmp_path) == found


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"hosts": 1}, "want 2 to 16 hosts; got 1"),
        ({"management": "here"}, "want --management such as"),
        ({"management": "192.0.2.0/28"}, "want --management of at least 32 addresses"),
        ({"clocks": {"gamma": 1.0}}, "--clock: want one of alpha, beta, s1; got gamma"),
        ({"state": Path("/" + "x" * 90)}, "want --state such that sockets have at most 100 bytes"),
    ],
)
def test_what_is_no_rack(words: dict[str, object], error: str) -> None:
    given = {"state": Path("/t"), "hosts": 2, "image": Path("/image"), "accel": "tcg"} | words
    with pytest.raises(PlanError, match=error):
        plan(**given)  # type: ignore[arg-type]


def test_a_machine_knows_who_it_is_and_its_clock() -> None:
    found = planned(beta=3.5)
    words = qemu.argv(found, found.of("beta"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert words[words.index("-rtc") + 1] == "base=2026-01-02T03:04:08,clock=host"
    serial = words[words.index("-smbios") + 1].replace(",,", ",")
    assert serial.endswith(
        "beta 198.19.71.1 mgmt,02:00:00:01:00:02,198.19.71.12/24 eth1,02:00:00:00:00:02,10.20.0.2/16"
    )
    assert "base=utc,clock=host" in qemu.argv(found, found.of("alpha"), datetime.now(UTC))
    with pytest.raises(PlanError, match="want one of alpha, beta, s1; got 'gamma'"):
        found.of("gamma")


def test_devices_have_their_names_before_udev_looks_for_them() -> None:
    """Beside each other, one boot of some ten ends with a management NIC that no network is configured for."""
    unit = (image.FILES / "rack-identity.service").read_text(encoding="utf-8")
    before = next(line for line in unit.splitlines() if line.startswith("Before="))
    assert "systemd-udevd.service" in before.removeprefix("Before=").split()


def test_the_time_server_answers_clients_alone() -> None:
    asked = bytearray(48)
    asked[0], asked[2] = 4 << 3 | ntp.CLIENT, 3
    asked[40:48] = struct.pack("!Q", 77)
    said = ntp.answer(bytes(asked), 1_700_000_000 * 10**9, 1_700_000_000 * 10**9 + 500_000_000)
    assert said is not None
    assert said[0] & 7 == ntp.SERVER
    originate, receive, transmit = struct.unpack_from("!QQQ", said, 24)
    assert (originate, transmit - receive) == (77, 1 << 31)
    assert (receive >> 32) - ntp.EPOCH_S == 1_700_000_000
    assert ntp.answer(bytes(47), 0, 0) is None
    assert ntp.answer(said, 0, 0) is None


def test_without_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_there", lambda program: program != qemu.PROGRAM)
    assert image.lacking() == "these Debian packages are missing: qemu-system-x86 (tools/setup --machines)"
    with pytest.raises(TestbedError, match="qemu-system-x86"):
        image.image(print)


def test_without_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 7 << 20))
    with pytest.raises(TestbedError, match=f"want 5120 MB free in {tmp_path} for an image; got 7 MB"):
        image._build(tmp_path / "key", print)


def test_kvm_is_used_only_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rack, "_kvm", lambda: False)
    assert rack.accel("auto") == "tcg"
    with pytest.raises(PlanError, match="--accel kvm: want /dev/kvm and a processor with vmx or svm"):
        rack.accel("kvm")
    monkeypatch.setattr(rack, "_kvm", lambda: True)
    assert (rack.accel("auto"), rack.accel("tcg")) == ("kvm", "tcg")
    with pytest.raises(PlanError, match="--accel: want one of auto, kvm, tcg; got 'hvf'"):
        rack.accel("hvf")


def test_a_time_server_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        monkeypatch.setattr(network, "NTP", other.getsockname()[1])
        monkeypatch.setattr(network, "devices", lambda: [])
        monkeypatch.setattr(network.simulated, "refuse_reached", lambda net: None)
        monkeypatch.setattr(network.os, "access", lambda path, mode: True)
        with pytest.raises(TestbedError, match=r"want UDP port .* free .*Address already in use"):
            network.refuse(planned())


def test_a_machine_that_does_not_come_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the last lines of its console, without what would move a terminal's cursor."""
    found = planned(tmp_path)
    folder = found.dir(found.of("alpha"))
    folder.mkdir(parents=True)
    (folder / qemu.CONSOLE).write_bytes(b"Loading Linux\r\n\x1b[2JKernel panic - not syncing: VFS\r\n")
    monkeypatch.setattr(qemu, "pid", lambda folder: 1)
    monkeypatch.setattr(rack.socket, "create_connection", lambda *words: _refused())
    with pytest.raises(TestbedError, match=r"within 0\.1 s; got none; the last lines of its console:\nLoading Linux\n"):
        rack.await_ssh(found, found.of("alpha"), 0.1)
    assert "\x1b" not in qemu.console(found, found.of("alpha"))


def _refused() -> socket.socket:
    raise ConnectionRefusedError


def test_only_a_rack_is_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(PlanError, match="want --state with the directory of a rack of machines"):
        rack.down(tmp_path)
    with pytest.raises(TestbedError, match="want the directory of a rack of machines"):
        load(tmp_path)


@pytest.mark.skipif(image.lacking() != "", reason=f"no machines: {image.lacking()}")
def test_a_disk_boots_by_grub(tmp_path: Path) -> None:
    """Boot code and partition table in sector 0, the core image after it, an ext4 file system at 1 MiB."""
    tree = tmp_path / "tree"
    (tree / "boot").mkdir(parents=True)
    (tree / "boot" / "a").write_text("x")
    made = tmp_path / "disk.raw"
    disk.write(tree, made)
    with made.open("rb") as file:
        sector = file.read(disk.SECTOR)
        assert sector[510:] == b"\x55\xaa"
        assert sector[:3] == (disk.GRUB / "boot.img").read_bytes()[:3]
        assert struct.unpack_from("<I", sector, 446 + 8)[0] == disk.START // disk.SECTOR
        assert file.read(2) != b"\0\0"
        file.seek(disk.START + 1024 + 56)
        assert file.read(2) == b"\x53\xef"
