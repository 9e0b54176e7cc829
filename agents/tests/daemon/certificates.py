# SPDX-License-Identifier: Apache-2.0
"""A rack's own authority and certificates by it, for tests; real ones, of elliptic curves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Signed:
    """The files of one certificate and its key."""

    certificate: Path
    key: Path


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])


class Authority:
    """Signs certificates into a directory; its own is ca.crt."""

    def __init__(self, folder: Path, name: str = "rack") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.file = folder / "ca.crt"
        basic = x509.BasicConstraints(ca=True, path_length=0)
        built = self._builder(self._name, self._key.public_key(), now() - DAY, now() + 30 * DAY)
        made = built.add_extension(basic, critical=True).sign(self._key, hashes.SHA256())
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, begin: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
        )

    def sign(self, name: str, begin: datetime | None = None, end: datetime | None = None) -> Signed:
        """NAME.crt with that common name and DNS name, and NAME.key of mode 0600."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = self._builder(_name(name), key.public_key(), begin or now() - DAY, end or now() + 60 * DAY)
        names = [x509.DNSName(name or "nobody"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = built.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(self._key, hashes.SHA256())
        signed = Signed(self._folder / f"{name or 'nobody'}.crt", self._folder / f"{name or 'nobody'}.key")
        signed.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        signed.key.touch(mode=0o600)
        signed.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return signed
