# SPDX-License-Identifier: Apache-2.0
"""Certificates of a rack: who they name, who may do what with them, and when they are made anew."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_rack import pki


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def common_name(path: Path) -> str:
    return str(certificate(path).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_names_and_uses(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha", "s1"])
    authority = certificate(tmp_path / "ca.crt")
    for name, use in (
        ("controller", ExtendedKeyUsageOID.CLIENT_AUTH),
        ("alpha", ExtendedKeyUsageOID.SERVER_AUTH),
        ("s1", ExtendedKeyUsageOID.SERVER_AUTH),
    ):
        found = certificate(tmp_path / f"{name}.crt")
        found.verify_directly_issued_by(authority)
        assert common_name(tmp_path / f"{name}.crt") == name
        assert list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [use]
    names = certificate(tmp_path / "alpha.crt").extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["alpha"]


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    pki.make(tmp_path / "keys", ["alpha"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").glob("*.key")}
    assert modes == {"ca.key": 0o600, "controller.key": 0o600, "alpha.key": 0o600}


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    assert len(pki.make(tmp_path, ["alpha"])) == 3
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert pki.make(tmp_path, ["alpha"]) == []
    assert pki.make(tmp_path, ["alpha", "beta"]) == [tmp_path / "beta.crt"]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_what_ends_soon_is_made_anew(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"], days=20)
    authority = (tmp_path / "ca.crt").read_bytes()
    assert pki.make(tmp_path, ["alpha"], days=20) == []
    made = pki.make(tmp_path, ["alpha"], days=200)  # twenty days are few now
    assert made == [tmp_path / "controller.crt", tmp_path / "alpha.crt"]
    assert certificate(tmp_path / "alpha.crt").not_valid_after_utc > datetime.now(UTC) + timedelta(days=199)
    assert (tmp_path / "ca.crt").read_bytes() == authority


def test_a_certificate_never_outlives_its_authority(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"], days=100_000)
    ends = [certificate(tmp_path / f"{name}.crt").not_valid_after_utc for name in ("alpha", "ca")]
    assert ends[0] == ends[1]


def test_anothers_certificate_and_anothers_key_are_replaced(tmp_path: Path) -> None:
    pki.make(tmp_path / "ours", ["alpha", "beta"])
    pki.make(tmp_path / "theirs", ["alpha"])
    for suffix in ("crt", "key"):
        (tmp_path / "ours" / f"alpha.{suffix}").write_bytes((tmp_path / "theirs" / f"alpha.{suffix}").read_bytes())
    (tmp_path / "ours" / "beta.key").write_bytes((tmp_path / "ours" / "controller.key").read_bytes())
    made = pki.make(tmp_path / "ours", ["alpha", "beta"])
    assert made == [tmp_path / "ours" / "alpha.crt", tmp_path / "ours" / "beta.crt"]


def test_an_authority_without_its_key_is_not_replaced(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"])
    (tmp_path / "ca.key").unlink()
    with pytest.raises(PlanError, match=r"ca\.key: want the key of ca\.crt; got none"):
        pki.make(tmp_path, ["alpha"])


def test_an_authority_that_ends_soon_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki, "AUTHORITY_DAYS", 10)
    with pytest.raises(PlanError, match=r"ca\.crt: the authority ends on 20\d\d-\d\d-\d\d"):
        pki.make(tmp_path, ["alpha"])


@pytest.mark.parametrize("name", ["ca.crt", "alpha.crt", "alpha.key"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    pki.make(tmp_path, ["alpha"])
    (tmp_path / name).write_text("nothing", encoding="utf-8")
    with pytest.raises(TestbedError, match=f"{name}: want a PEM"):
        pki.make(tmp_path, ["alpha"])


@pytest.mark.parametrize("name", ["", "../x", "a b", "controller", "ca", "-a", "a/b"])
def test_a_name_that_can_not_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlanError, match="want names of agents"):
        pki.make(tmp_path / "new", [name])
    assert not (tmp_path / "new").exists()


def test_a_place_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(TestbedError, match="file: "):
        pki.make(tmp_path / "file", ["alpha"])


def test_an_agents_certificate_does_not_become_a_controllers(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"], controllers=["second"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for names, controllers in ((["second"], []), (["beta"], ["alpha"])):
        with pytest.raises(PlanError, match=r"want the certificate of an? (agent|controller); got another's"):
            pki.make(tmp_path, names, controllers=controllers)
    with pytest.raises(PlanError, match="want other names for controllers than for agents; got gamma"):
        pki.make(tmp_path, ["gamma"], controllers=["gamma"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert pki.make(tmp_path, ["alpha"], controllers=["second"]) == []


def test_a_certificate_under_another_name_is_refused(tmp_path: Path) -> None:
    pki.make(tmp_path, ["alpha"])
    for what in ("crt", "key"):
        (tmp_path / f"beta.{what}").write_bytes((tmp_path / f"alpha.{what}").read_bytes())
    with pytest.raises(PlanError, match=r"beta\.crt: want the certificate of .*; got another's"):
        pki.make(tmp_path, ["alpha", "beta"])
