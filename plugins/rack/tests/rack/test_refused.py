# SPDX-License-Identifier: Apache-2.0
"""What a rack is refused for before anything is run: exit code, words, no results, no host changed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import testctl_agent

from plugins.rack.tests.rack.bed import PLAN, Bed
from plugins.rack.tests.rack.faked import faked, needs_faketime

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]


def nothing_ran(rack: Bed) -> bool:
    return not list((rack.where / "results").glob("*/points/*"))


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        (
            {"s1": {"testctl_ports": {"alpha": "p1", "gamma": "p2"}}},
            2,
            "s1: testctl_ports: want hosts, of alpha, beta, at the other end; got gamma",
        ),
        ({"s1": {"testctl_ports": {"alpha": "p1"}}}, 2, "the plan's topology does not fit"),
        ({"beta": {"testctl_device": "eth9"}}, 3, "host beta (198.51.100.12:7400): device: want eth9; got eth1"),
        ({"beta": {"testctl_listen": "198.51.100.99:7400"}}, 3, "host beta (198.51.100.99:7400): "),
        (
            {"alpha": {"testctl_listen": "198.51.100.12:7400"}, "beta": {"testctl_listen": "198.51.100.11:7400"}},
            3,
            "host beta (198.51.100.11:7400): no mutual trust",
        ),
    ],
    ids=["unknown host", "missing cable", "missing device", "nobody there", "another host's certificate"],
)
def test_a_wrong_inventory(rack: Bed, changed: Mapping[str, Any], code: int, words: str) -> None:
    told = rack.ends(rack.run(inventory=rack.other_inventory(**changed)), code)
    assert words in told
    assert nothing_ran(rack)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (PLAN.replace("pair", "star").replace("sender -> receiver", "h1 -> h2"), "the plan's topology does not fit"),
        (PLAN.replace("[all, mtu", "[gamma, mtu"), "gamma"),
    ],
    ids=["more hosts than there are", "a host of no topology"],
)
def test_a_plan_that_the_rack_can_not_have(rack: Bed, plan: str, words: str) -> None:
    path = rack.where / "other.yaml"
    path.write_text(plan, encoding="utf-8")
    assert words in rack.ends(rack.run(plan=path), 2)
    assert nothing_ran(rack)


def test_a_half_deployed_rack(rack: Bed) -> None:
    rack.kill("beta", signal.SIGTERM)
    told = rack.ends(rack.run(), 3)
    assert f"host beta ({rack.listens('beta')}): not reachable" in told
    assert "systemctl status testctl-agent" in told
    assert nothing_ran(rack)


def test_a_device_that_is_not_there(rack: Bed) -> None:
    rack.kill("beta", signal.SIGTERM)
    rack.start("beta", devices={"beta": "eth9"})
    told = rack.ends(rack.run(inventory=rack.other_inventory(beta={"testctl_device": "eth9"})), 3)
    assert f"host beta ({rack.listens('beta')}): device eth9: can't be read: " in told
    assert nothing_ran(rack)


def test_an_agent_of_another_version(rack: Bed, tmp_path: Path) -> None:
    shutil.copytree(Path(testctl_agent.__file__).parent, tmp_path / "testctl_agent")
    with (tmp_path / "testctl_agent" / "task.py").open("a", encoding="utf-8") as file:
        file.write("\nCHANGED = True\n")
    rack.kill("beta", signal.SIGTERM)
    rack.start("beta", "env", f"PYTHONPATH={tmp_path}")
    told = rack.ends(rack.run(), 3)
    assert f"host beta ({rack.listens('beta')}): version of the agent: want " in told
    assert "deploy it again" in told
    assert nothing_ran(rack)


@needs_faketime
def test_a_certificate_that_expired(rack: Bed) -> None:
    """An agent does not start with one; the controller does not believe one that expired while it ran."""
    keys = rack.rack.state / "keys"
    good = (keys / "beta.crt").read_bytes()
    rack.kill("beta", signal.SIGTERM)
    try:
        expire(keys, "beta")
        with pytest.raises(AssertionError, match=r"its certificate .*beta\.crt expired at"):
            rack.start("beta")
        rack.start("beta", *faked("FAKETIME=-2d"))
        told = rack.ends(rack.run(), 3)
    finally:
        (keys / "beta.crt").write_bytes(good)
    assert f"host beta ({rack.listens('beta')}): no mutual trust" in told
    assert nothing_ran(rack)


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
