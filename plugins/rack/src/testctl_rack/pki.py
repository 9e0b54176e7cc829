# SPDX-License-Identifier: Apache-2.0
"""The rack's certificates: its own authority, one for the controller and one for each agent.

A directory holds ca.crt, controller.crt and NAME.crt (X.509, PEM), and a key (EC P-256, mode 0600) beside each.
An agent's certificate has its inventory name as common name and as DNS name; the controller's common name is
"controller", other controllers' are names of their own.  What is there and good for a while is kept; the authority is
never replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

AUTHORITY = "ca"
CONTROLLER = "controller"
DAYS = 825
AUTHORITY_DAYS = 3650
_MARGIN_DAYS = 30
_CALLS, _ANSWERS = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
_OWNER = {_CALLS: "a controller", _ANSWERS: "an agent"}
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class _Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make(directory: Path, names: Sequence[str], days: int = DAYS, controllers: Sequence[str] = ()) -> list[Path]:
    """Create certificates that are missing or expire soon, for the controller and the agents `names`; returns the new
    ones.

    controllers: more of them, which may call as the first may

    days: how long new ones hold, at most as long as the authority.  PlanError for a name that can't be, or an
    authority that ends soon; TestbedError for a file that can't be read or written.
    """
    for name in (*names, *controllers):
        if not _NAME.fullmatch(name) or name in (AUTHORITY, CONTROLLER):
            raise PlanError(
                f"keys {directory}: want names of agents, or other controllers, of letters, digits, '.', '_', '-', "
                f"not {AUTHORITY} or {CONTROLLER}; got {name!r}"
            )
    if both := sorted(set(names) & set(controllers)):
        raise PlanError(f"keys {directory}: want other names for controllers than for agents; got {', '.join(both)}")
    try:
        durable.make_directory(directory, 0o700)
        return _make(directory, names, days, (CONTROLLER, *controllers))
    except OSError as error:
        raise TestbedError(f"{error.filename or directory}: {error.strerror}") from error


def _make(directory: Path, names: Sequence[str], days: int, controllers: Sequence[str]) -> list[Path]:
    made = []
    now = datetime.now(UTC)
    if not _path(directory, AUTHORITY, "crt").exists():
        _write(directory, AUTHORITY, _authority(now))
        made.append(_path(directory, AUTHORITY, "crt"))
    authority = _read(directory, AUTHORITY)
    if authority is None:
        path = _path(directory, AUTHORITY, "key")
        raise PlanError(f"{path}: want the key of {AUTHORITY}.crt; got none, or another's")
    end = authority.certificate.not_valid_after_utc
    if end < now + timedelta(days=_MARGIN_DAYS):
        raise PlanError(
            f"{_path(directory, AUTHORITY, 'crt')}: the authority ends on {end:%Y-%m-%d}; move the directory away, "
            "make new keys and deploy them to every agent"
        )
    margin = timedelta(days=min(_MARGIN_DAYS, days / 3))
    roles = dict.fromkeys(controllers, _CALLS) | dict.fromkeys(names, _ANSWERS)
    pairs = {name: _read(directory, name) for name in roles}
    for name, pair in pairs.items():
        if pair is not None and not (_is(pair, roles[name]) and pair.certificate.subject == _name(name)):
            path = _path(directory, name, "crt")
            raise PlanError(f"{path}: want the certificate of {_OWNER[roles[name]]}; got another's")
    for name, role in roles.items():
        if not _good(pairs[name], authority, now + margin):
            _write(directory, name, _leaf(name, role, authority, now, min(now + timedelta(days=days), end)))
            made.append(_path(directory, name, "crt"))
    return made


def _path(directory: Path, name: str, what: str) -> Path:
    return directory / f"{name}.{what}"


def _good(pair: _Pair | None, authority: _Pair, until: datetime) -> bool:
    """Whether a certificate is of this authority and lasts."""
    if pair is None or pair.certificate.not_valid_after_utc < until:
        return False
    try:
        pair.certificate.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _is(pair: _Pair, role: x509.ObjectIdentifier) -> bool:
    """Whether a certificate is for a client, or for a server."""
    try:
        return role in pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True


def _read(directory: Path, name: str) -> _Pair | None:
    """A certificate with its key; None when one is missing or they don't belong together."""
    paths = _path(directory, name, "crt"), _path(directory, name, "key")
    if not all(path.exists() for path in paths):
        return None
    try:
        certificate = x509.load_pem_x509_certificate(paths[0].read_bytes())
    except ValueError as error:
        raise TestbedError(f"{paths[0]}: want a PEM certificate; got something else ({error})") from error
    try:
        key = serialization.load_pem_private_key(paths[1].read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise TestbedError(f"{paths[1]}: want a PEM private key without a password; got something else") from error
    paths[1].chmod(0o600)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    return _Pair(certificate, key)


def _write(directory: Path, name: str, pair: _Pair) -> None:
    """Both files, the key first; each appears whole."""
    key = pair.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for what, text, mode in (
        ("key", key, 0o600),
        ("crt", pair.certificate.public_bytes(serialization.Encoding.PEM), 0o644),
    ):
        durable.write(_path(directory, name, what), text, mode)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    """Of an authority (signs certificates) or of one end of a connection."""
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _begun(subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    begun = _begun("testctl rack", _name("testctl rack"), key)
    begun = begun.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
    begun = begun.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return _Pair(begun.add_extension(_usage(signs=True), critical=True).sign(key, hashes.SHA256()), key)


def _leaf(name: str, role: x509.ObjectIdentifier, authority: _Pair, now: datetime, end: datetime) -> _Pair:
    """The controller's certificate is for a client, an agent's for a server."""
    key = ec.generate_private_key(ec.SECP256R1())
    begun = _begun(name, authority.certificate.subject, key)
    begun = begun.not_valid_before(now - timedelta(hours=1)).not_valid_after(end)
    begun = begun.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    begun = begun.add_extension(_usage(signs=False), critical=True)
    begun = begun.add_extension(x509.ExtendedKeyUsage([role]), critical=False)
    begun = begun.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
    )
    if role == _ANSWERS:
        begun = begun.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return _Pair(begun.sign(authority.key, hashes.SHA256()), key)
