# SPDX-License-Identifier: Apache-2.0
"""What befalls a rack: no host is left changed, no result lost or doubled, and the reason is told in plain words."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from testctl.testbeds.point import drift

from tests.rack.bed import POINTS, Bed, bed, eventually

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]
STEPS = (
    "Attest begins", "Describe begins", "Apply begins", "Apply ended", "Start begins", "Start ended", "Wait begins",
    "Fetch begins", "Stop begins", "Restore begins", "Restore ended",
)  # fmt: skip
"""Before, between and after the calls of a point, in their order."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with bed(tmp_path_factory.mktemp("rack")) as found:
        yield found


@pytest.fixture
def rack(made: Bed) -> Iterator[Bed]:
    """The rack as it should be, with no results; afterwards every station is what it was before."""
    for room in made.rack.rooms:
        if room.name not in made.agents:
            made.start(room.name)
    free(made)
    before = made.attest()
    shutil.rmtree(made.where / "results", ignore_errors=True)
    made.forget_calls()
    yield made
    assert drift(before, made.attest()) == []


def whole_after(rack: Bed, finished: int | None = None) -> None:
    """The rest of the run: it passes, and takes over what was finished before."""
    done = [path for path in (rack.where / "results").glob("2*/points/*") if _passed(path)]
    if finished is not None:
        assert len(done) == finished
    rack.whole("--resume")


def _passed(point: Path) -> bool:
    verdict = point / "verdict.json"
    return verdict.exists() and json.loads(verdict.read_text(encoding="utf-8"))["verdict"] == "pass"


def results(rack: Bed) -> list[dict[str, Any]]:
    """The points of the newest run that ended."""
    newest = (rack.where / "results" / "latest").resolve()
    found: list[dict[str, Any]] = json.loads((newest / "summary.json").read_text(encoding="utf-8"))["points"]
    return found


def test_nothing_happens(rack: Bed) -> None:
    """The plan passes on the rack; the four segments it names are lost, and no others."""
    for point in rack.whole()["points"]:
        assert point["metrics"]["bulk"]["packets_lost"] == 4


@pytest.mark.parametrize("step", STEPS)
def test_an_agent_is_killed(rack: Bed, step: str) -> None:
    process = rack.run()
    assert rack.when(f"sender {step}", process)
    rack.kill("alpha")
    time.sleep(0.2)
    rack.start("alpha")
    said, _ = process.communicate(timeout=300)
    assert process.returncode in (0, 3), said
    broken = [point for point in results(rack) if point["verdict"] != "pass"]
    assert len(results(rack)) == POINTS
    assert all("alpha" in point["reason"] for point in broken), broken
    whole_after(rack, POINTS - len(broken))


@pytest.mark.parametrize("step", STEPS)
def test_the_controller_is_killed(rack: Bed, step: str) -> None:
    process = rack.run()
    assert rack.when(f"sender {step}", process)
    process.kill()
    process.communicate(timeout=30)
    free(rack)
    whole_after(rack)


def free(rack: Bed) -> None:
    """Wait until the leases of a controller that died are over, by restoring."""
    argv = rack.command("restore", "--testbed", str(rack.inventory))
    done = subprocess.run(argv, cwd=rack.where, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_host_vanishes_and_returns(rack: Bed) -> None:
    process = rack.run()
    assert rack.when("sender Wait begins", process) or rack.when("receiver Start ended", process)
    rack.unplug("beta", "mgmt")
    said, _ = process.communicate(timeout=300)
    rack.unplug("beta", "mgmt", up=True)
    assert process.returncode == 3, said
    reasons = [point["reason"] for point in results(rack) if point["verdict"] == "broken"]
    assert reasons
    assert all(f"host beta ({rack.listens('beta')})" in reason for reason in reasons), reasons
    free(rack)
    whole_after(rack)


def test_two_controllers_at_once(rack: Bed) -> None:
    first = rack.run("--results", "results-first")
    assert rack.when("sender Apply begins", first)
    second = rack.ends(rack.run("--results", "results-second"), 3)
    assert "leased to" in second
    assert f"process {os.getpid()}" not in second
    rack.ends(first, 0)
    assert not list((rack.where / "results-second").glob("*/points/*"))
    shutil.rmtree(rack.where / "results-first")
    rack.whole()


def test_interrupted_twice(rack: Bed) -> None:
    process = rack.run()
    assert rack.when("sender Start begins", process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), said
    free(rack)
    whole_after(rack)


def test_a_slow_agent(rack: Bed) -> None:
    """One that stands still for a while delays the point; one that stands still for good is given up."""
    process = rack.run()
    assert rack.when("receiver Apply begins", process)
    rack.agents["beta"].send_signal(signal.SIGSTOP)
    time.sleep(3)
    rack.agents["beta"].send_signal(signal.SIGCONT)
    rack.ends(process, 0)
    rack.forget_calls()
    shutil.rmtree(rack.where / "results")
    process = rack.run()
    assert rack.when("receiver Apply ended", process)
    rack.agents["beta"].send_signal(signal.SIGSTOP)
    said, _ = process.communicate(timeout=300)
    rack.agents["beta"].send_signal(signal.SIGCONT)
    assert process.returncode == 3, said
    assert any("beta" in point["reason"] for point in results(rack))
    free(rack)
    whole_after(rack)


def test_a_half_deployed_rack(rack: Bed) -> None:
    rack.kill("beta", signal.SIGTERM)
    said = rack.ends(rack.run(), 3)
    assert f"host beta ({rack.listens('beta')}): not reachable" in said
    assert "systemctl status testctl-agent" in said
    assert not list((rack.where / "results").glob("*/points/*"))
    rack.start("beta")
    rack.whole()


def test_a_certificate_that_expired(rack: Bed) -> None:
    keys = rack.rack.state / "keys"
    good = {name: (keys / name).read_bytes() for name in ("beta.crt", "beta.key")}
    rack.kill("beta", signal.SIGTERM)
    expire(keys, "beta")
    try:
        with pytest.raises(AssertionError, match=r"its certificate .*beta\.crt expired at"):
            rack.start("beta")
        assert "not reachable" in rack.ends(rack.run(), 3)
    finally:
        for name, data in good.items():
            (keys / name).write_bytes(data)
        rack.kill("beta")
    rack.start("beta")
    rack.whole()


def expire(keys: Path, name: str) -> None:
    """A certificate of the rack's own authority that ended yesterday."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    old = x509.load_pem_x509_certificate((keys / f"{name}.crt").read_bytes())
    authority = x509.load_pem_x509_certificate((keys / "ca.crt").read_bytes())
    signer: Any = serialization.load_pem_private_key((keys / "ca.key").read_bytes(), None)
    begun = x509.CertificateBuilder(
        subject_name=old.subject, issuer_name=authority.subject, public_key=old.public_key(),
        serial_number=x509.random_serial_number(), extensions=list(old.extensions),
        not_valid_before=datetime.now(UTC) - timedelta(days=3), not_valid_after=datetime.now(UTC) - timedelta(days=1),
    )  # fmt: skip
    made = begun.sign(signer, hashes.SHA256())
    (keys / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def test_a_full_disk(rack: Bed) -> None:
    """The agent's journal has no room: nothing is applied, and it says why."""
    rack.kill("alpha", signal.SIGTERM)
    full = rack.where / "alpha" / "full"
    full.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full)], check=True)
    try:
        rack.start("alpha", journal=str(full / "journal.jsonl"))
        (full / "fill").write_bytes(bytes(64 * 1024 - 4096))
        with (full / "more").open("ab") as file, pytest.raises(OSError, match="No space"):
            file.write(bytes(1 << 20))
        rack.ends(rack.run(), 3)
        reasons = [point["reason"] for point in results(rack)]
        assert all("alpha" in reason and "No space left" in reason for reason in reasons), reasons
        rack.kill("alpha", signal.SIGTERM)
    finally:
        if "alpha" in rack.agents:
            rack.kill("alpha")
        subprocess.run(["umount", str(full)], check=True)
    rack.start("alpha")
    whole_after(rack, 0)


@pytest.mark.skipif(shutil.which("faketime") is None, reason="needs faketime: apt-get install faketime")
def test_a_clock_steps(rack: Bed) -> None:
    """A clock that is wrong is refused; one that steps during a point makes it invalid."""
    rack.kill("alpha", signal.SIGTERM)
    offset = rack.where / "offset"
    offset.write_text("+5s\n", encoding="ascii")
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    words = ["env", f"LD_PRELOAD={library}", f"FAKETIME_TIMESTAMP_FILE={offset}", "FAKETIME_NO_CACHE=1",
             "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1"]  # fmt: skip
    try:
        rack.start("alpha", *words)
        rack.ends(rack.run(), 3)
        assert all("its clock is +5.0" in point["reason"] for point in results(rack)), results(rack)
        offset.write_text("+0s\n", encoding="ascii")
        shutil.rmtree(rack.where / "results")
        rack.forget_calls()
        process = rack.run()
        assert rack.when("sender Start ended", process)
        offset.write_text("+2s\n", encoding="ascii")
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 3, said
        reasons = [point["reason"] for point in results(rack) if point["verdict"] in ("invalid", "broken")]
        assert any("its clock moved by" in reason for reason in reasons), reasons
    finally:
        rack.kill("alpha", signal.SIGTERM)
        rack.start("alpha")
    whole_after(rack)


def test_drift_makes_a_point_invalid(rack: Bed) -> None:
    """Somebody changes a host during a point."""
    process = rack.run()
    assert rack.when("receiver Apply ended", process)
    inside = ["ip", "netns", "exec", rack.room("beta").namespace]
    try:
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.tcp_retries2=9"], check=True)
        rack.ends(process, 3)
    finally:
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.tcp_retries2=15"], check=True)
    invalid = [point["reason"] for point in results(rack) if point["verdict"] == "invalid"]
    assert len(invalid) == 1
    assert "tcp_retries2 was 15, is 9 after the point" in invalid[0]
    whole_after(rack, 1)


def test_a_dead_controller_s_changes_go_by_themselves(rack: Bed) -> None:
    before = rack.attest()
    process = rack.run()
    assert rack.when("sender Apply ended", process)
    process.kill()
    process.communicate(timeout=30)
    assert drift(before, rack.attest())
    assert eventually(lambda: not drift(before, rack.attest()))
