# SPDX-License-Identifier: Apache-2.0
"""Mutual TLS: the files of an agent, checked before it listens."""

from __future__ import annotations

import logging
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc

from testctl_agent.daemon import certificate
from testctl_agent.daemon.config import Tls
from testctl_agent.spec.errors import TestbedError

_log = logging.getLogger(__name__)
_SOON = timedelta(days=30)


def credentials(who: str, name: str, tls: Tls) -> grpc.ServerCredentials:
    """Credentials of a server that shows its certificate and wants one of each peer.

    Raises TestbedError that names the file: one that can't be read, a key that others may read or
    that is another certificate's, a certificate that is not valid now or of another name.
    """
    authority, chain, key = _read(tls.authority), _read(tls.certificate), _private(tls.key)
    _check_pair(tls)
    _check_own(who, name, tls.certificate, chain)
    _parsed(tls.authority, authority)
    return grpc.ssl_server_credentials([(key, chain)], authority, require_client_auth=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TestbedError(f"{path}: can't be read: {error.strerror}") from error


def _private(path: Path) -> bytes:
    """A key's bytes; the mode is checked on the open file."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise TestbedError(f"{path}: want a key that only its owner can read (mode 0600); got mode {mode:04o}")
            return file.read()
    except OSError as error:
        raise TestbedError(f"{path}: can't be read: {error.strerror}") from error


def _check_pair(tls: Tls) -> None:
    """Check that the key belongs to the certificate.  A key with a passphrase is refused."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise TestbedError(f"{tls.key}: want the key of {tls.certificate}, without a passphrase; {reason}") from error


def _parsed(path: Path, pem: bytes) -> certificate.Certificate:
    try:
        return certificate.parse(pem.decode("ascii", errors="replace"))
    except ValueError as error:
        raise TestbedError(f"{path}: {error}") from error


def _check_own(who: str, name: str, path: Path, chain: bytes) -> None:
    own, now = _parsed(path, chain), datetime.now(UTC)
    if wrong := own.wrong_at(now):
        raise TestbedError(f"{who}: its certificate {path} {wrong}")
    if name not in own.names:
        raise TestbedError(f"{path}: want a certificate of {name}; got one of {', '.join(own.names) or 'nobody'}")
    if own.end - now < _SOON:
        _log.warning("%s: its certificate %s expires at %s", who, path, f"{own.end:%Y-%m-%d %H:%M} UTC")
