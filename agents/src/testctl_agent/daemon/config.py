# SPDX-License-Identifier: Apache-2.0
"""The configuration file of an agent daemon: JSON, described in docs/agent.md."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn

from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.limits import MESSAGE_BYTES, Limits
from testctl_agent.params.others import of_a_rack
from testctl_agent.spec.errors import PlanError
from testctl_agent.switch import backend as backends
from testctl_agent.system.entry_points import BACKENDS, GENERATORS, Group

THREADS, LONG_CALLS = 32, 16
DEFAULT_LIMITS = Limits(MESSAGE_BYTES, tasks=64, work_bytes=20 * 10**9, long_calls=LONG_CALLS)
_KEYS = frozenset({"name", "kind", "devices", "listen", "workdir", "journal", "generators", "backend", "forwarding",
                   "tls", "lease", "limits"})  # fmt: skip
_TLS_KEYS = frozenset({"authority", "certificate", "key", "controllers"})
_LIMITS = {"message_bytes": (1 << 10, 1 << 30), "tasks": (1, 10_000), "work_bytes": (1, 1 << 60)}
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?")
_DEVICE = re.compile(r"(?!\.{1,2}$)[!-.0-9;-~]{1,15}")
_FRONT_PANEL = re.compile(r"[0-9]{1,3}/[0-9]{1,2}")
"""A port of a switch whose ports are no devices of its host: connector/channel."""
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_UNIX = "unix:"
_UNIX_BYTES = 107
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class Tls:
    """TLS settings: the authority, the agent's certificate and key (PEM files), and the common names that may call."""

    authority: Path
    certificate: Path
    key: Path
    controllers: tuple[str, ...]


@dataclass(frozen=True)
class DaemonConfig:
    """A valid configuration.  `tls` is None only with a unix socket."""

    agent: AgentConfig
    listen: str
    tls: Tls | None
    lease: bool
    limits: Limits


class _Reader:
    """One JSON object of the file; errors name the file and the key."""

    def __init__(self, file: str, values: Mapping[str, Any], known: frozenset[str], prefix: str = "") -> None:
        self._file, self._values, self._prefix = file, values, prefix
        for key in values:
            if key not in known:
                self.refuse(key, f"one of the keys {', '.join(sorted(known))}", key)

    def refuse(self, key: str, want: str, got: object, besides: str = "") -> NoReturn:
        shown = json.dumps(got, default=str)
        shown = shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…"
        raise PlanError(f"{self._file}: {self._prefix}{key[:_SHOWN_CHARS]}: want {want}; got {shown}{besides}")

    def has(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str, want: str, fits: Callable[[Any], bool], default: Any = None) -> Any:
        """A key's value, checked against its type; the default (None: required) if the key is missing."""
        if key not in self._values:
            if default is None:
                raise PlanError(f"{self._file}: {self._prefix}{key}: want {want}; it is missing")
            return default
        if not fits(self._values[key]):
            self.refuse(key, want, self._values[key])
        return self._values[key]

    def text(self, key: str, want: str, pattern: re.Pattern[str]) -> str:
        return str(self.get(key, want, lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None))

    def path(self, key: str) -> Path:
        def absolute(value: Any) -> bool:
            return isinstance(value, str) and value.startswith("/") and value.isprintable() and ".." not in value

        return Path(self.get(key, "an absolute path", absolute))

    def table(self, key: str, want: str, default: Any = None) -> dict[str, str]:
        def texts(value: Any) -> bool:
            return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())

        return dict(self.get(key, want, texts, default))


def parse(text: str, file: str) -> DaemonConfig:
    """The configuration in `text`, the content of `file`.  Raises PlanError: file, key, wanted, got."""
    top = _Reader(file, _object(text, file), _KEYS)
    agent = _agent(top)
    listen = top.get("listen", 'an address such as "192.0.2.11:7400", or "unix:/run/…"', _is_address)
    tls = _tls(top, file)
    if tls is None and not listen.startswith(_UNIX):
        top.refuse("listen", f"an address that begins with {_UNIX} where there is no tls", listen)
    lease = top.get("lease", "true or false", lambda value: isinstance(value, bool), tls is not None)
    return DaemonConfig(agent, listen, tls, lease, _limits(top, file))


def load(path: Path) -> DaemonConfig:
    """The configuration in a file.  Raises PlanError."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise PlanError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: want UTF-8; {error.reason} at byte {error.start}") from error


def _object(text: str, file: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanError(f"{file}: {twice[:_SHOWN_CHARS]}: want each key once; got it twice")
        return fields

    try:
        parsed = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{file}: want JSON; {error}") from error
    if not isinstance(parsed, dict):
        raise PlanError(f"{file}: want a JSON object; got {type(parsed).__name__}")
    return parsed


def _agent(top: _Reader) -> AgentConfig:
    name = top.text("name", "a name such as alpha", _NAME)
    kind = top.get("kind", '"host" or "switch"', lambda value: value in ("host", "switch"))
    devices = top.table("devices", "an object of devices")
    if kind == "host" and set(devices) != {name}:
        top.refuse("devices", f'{{"{name}": its device}}', devices)
    ports = all(re.fullmatch(re.escape(name) + ":" + _NAME.pattern, port) for port in devices)
    if kind == "switch" and not (devices and ports):
        top.refuse("devices", f'{{"{name}:HOST": device, …}}', devices)
    if not all(_is_port(device, kind, top) for device in devices.values()):
        top.refuse("devices", "names of network devices", devices)
    if len(set(devices.values())) < len(devices):
        top.refuse("devices", "each device once", devices)
    for key in ("backend", "forwarding") if kind == "host" else ("generators",):
        if top.has(key):
            top.refuse(key, f"no such key of a {kind}", "one")
    places = top.path("workdir"), top.path("journal")
    of_switch = _switch(top, devices) if kind == "switch" else {}
    return AgentConfig(name, kind, devices, *places, **of_switch, generators=_generators(top))


def _is_port(device: str, kind: str, top: _Reader) -> bool:
    """Whether this may be a network device, or, with a back end of another distribution, a front-panel port ("3/0")."""
    own = kind == "host" or top.get("backend", "a back end", lambda value: True, "ebpf") in backends.own()
    return bool(_DEVICE.fullmatch(device) or (not own and _FRONT_PANEL.fullmatch(device)))


def _generators(top: _Reader) -> tuple[str, ...]:
    """The generators of other distributions that the agent may run."""

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)

    generators = tuple(top.get("generators", "a list of generators", texts, []))
    for generator in generators:
        _known(top, "generators", of_a_rack().values, GENERATORS, generator)
    return generators


def _known(top: _Reader, key: str, own: Iterable[object], group: Group, word: object) -> None:
    """Refuse a word that is neither the agent's own nor an installed distribution's."""
    if word not in own and word not in group.names():
        want = f"one of {', '.join(sorted({*map(str, own), *group.names()}))}"
        top.refuse(key, want, word, group.hint(word))


def _switch(top: _Reader, devices: Mapping[str, str]) -> dict[str, Any]:
    """The members of AgentConfig that only a switch has."""
    backend = top.get("backend", "a back end", lambda value: True, "ebpf")
    _known(top, "backend", backends.own(), BACKENDS, backend)
    forwarding = top.table("forwarding", "an object MAC address → device", {})
    if not all(_MAC.fullmatch(mac) and device in devices.values() for mac, device in forwarding.items()):
        top.refuse("forwarding", "MAC addresses such as 02:00:00:00:00:01 → devices of this switch", forwarding)
    return {"backend": backend, "forwarding": forwarding}


def _is_address(value: Any) -> bool:
    """Whether a value is "IPv4:port", "[IPv6]:port" or "unix:/path"."""
    if not isinstance(value, str) or not value.isprintable():
        return False
    if value.startswith(_UNIX):
        path = value.removeprefix(_UNIX)
        return path.startswith("/") and len(path.encode()) <= _UNIX_BYTES
    host, _, port = value.rpartition(":")
    try:
        version = ip_address(host.removeprefix("[").removesuffix("]")).version
    except ValueError:
        return False
    bracketed = host.startswith("[") and host.endswith("]")
    return bracketed == (version == 6) and re.fullmatch(r"[0-9]{1,5}", port) is not None and 0 < int(port) < 1 << 16


def _tls(top: _Reader, file: str) -> Tls | None:
    if not top.has("tls"):
        return None
    values = top.get("tls", "an object", lambda value: isinstance(value, dict))
    tls = _Reader(file, values, _TLS_KEYS, "tls.")

    def names(value: Any) -> bool:
        return isinstance(value, list) and bool(value) and all(isinstance(n, str) and 0 < len(n) <= 64 for n in value)

    controllers = tls.get("controllers", "a list of the common names that may call", names)
    return Tls(tls.path("authority"), tls.path("certificate"), tls.path("key"), tuple(controllers))


def _limits(top: _Reader, file: str) -> Limits:
    values = top.get("limits", "an object", lambda value: isinstance(value, dict), {})
    limits = _Reader(file, values, frozenset(_LIMITS), "limits.")

    def number(key: str) -> int:
        least, most = _LIMITS[key]

        def fits(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

        return int(limits.get(key, f"a whole number from {least} to {most}", fits, getattr(DEFAULT_LIMITS, key)))

    return dataclasses.replace(DEFAULT_LIMITS, **{key: number(key) for key in _LIMITS})
