# SPDX-License-Identifier: Apache-2.0
"""What an agent says of its certificate, against what the `cryptography` package put in."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl_agent.daemon import certificate

from agents.tests.daemon.certificates import Authority


@pytest.mark.parametrize("year", [1999, 2049, 2050, 2120])
def test_names_and_times(tmp_path: Path, year: int) -> None:
    begin, end = (datetime(y, 2, 28, 23, 59, 59, tzinfo=UTC) for y in (year, year + 1))
    signed = Authority(tmp_path).sign("alpha", begin, end)
    found = certificate.parse(signed.certificate.read_text())
    assert found == certificate.Certificate(("alpha",), begin, end)
    assert found.wrong_at(begin) == ""
    assert found.wrong_at(end) == ""
    assert found.wrong_at(begin - timedelta(seconds=1)).startswith(f"is valid from {year}-02-28 23:59:59 UTC on; now")
    assert found.wrong_at(end + timedelta(seconds=1)).startswith(f"expired at {year + 1}-02-28 23:59:59 UTC; now it is")


def test_nobody(tmp_path: Path) -> None:
    assert certificate.parse(Authority(tmp_path).sign("").certificate.read_text()).names == ()


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_one_is_refused_or_read(data: st.DataObject) -> None:
    der = bytearray(DER)
    for _ in range(data.draw(st.integers(1, 3))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    pem = ssl.DER_cert_to_PEM_cert(bytes(der[: data.draw(st.integers(0, len(der)))]))
    try:
        found = certificate.parse(pem)
    except ValueError:
        return
    assert isinstance(found.end, datetime)


def test_what_comes_before_a_certificate_is_not_skipped() -> None:
    with pytest.raises(ValueError, match="want DER with tag 0x30; got another"):
        certificate.parse(ssl.DER_cert_to_PEM_cert(b"\x05\x00" + DER))


@given(text=st.text())
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="want a certificate in PEM"):
        certificate.parse(text)


def _der() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return ssl.PEM_cert_to_DER_cert(Authority(Path(folder)).sign("alpha").certificate.read_text())


DER = _der()
