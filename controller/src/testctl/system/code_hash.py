# SPDX-License-Identifier: Apache-2.0
"""Hashes of code: of modules and of all that they import of this project, which is read from their text.

What a text imports is kept in the cache: parsing the project's files takes longer than all else that a command does
before its first point.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from testctl_agent.system import durable

from testctl.system.checkout import cache_dir

KEPT = "imports.json"
"""In the cache: a key of _key() → names."""
MOST = 4000
"""Texts in it."""

PACKAGES = ("testctl", "testctl_agent")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The parts of a statement that have statements in them."""


def hash_of(modules: Iterable[str]) -> str:
    """16 hex digits over the text of the modules and of what they import, however far away.

    C sources in a package's directory are part of it.
    """
    digest = hashlib.sha256()
    found = closure(modules)
    packages = {name: path.parent for name, path in found.items() if path.name == "__init__.py"}
    in_c = {f"{name}/{one.name}": one for name, place in packages.items() for one in place.glob("*.[ch]")}
    for name, path in sorted((found | in_c).items()):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """The files of the modules and of what they import of PACKAGES, by the modules' names.

    Importing a.b.c runs a and a.b too.  What only a type checker imports is left out.
    """
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting += [name.rpartition(".")[0], *imports(path, name)]
    _keep()
    return found


def imports(path: Path, name: str = "") -> list[str]:
    """The modules that a Python file may import, in functions too; names of other things may be among them.

    Those in functions of an __init__.py are left out: they run for who asks for a name of the package, not for it.
    """
    is_package = path.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    return list(_imports(path.read_bytes(), package, is_package))


@cache
def _imports(text: bytes, package: str, is_package: bool) -> tuple[str, ...]:
    """Those of a text, which is parsed once: several closures of a run have the same files, and so have other runs."""
    key = _key(text, package, is_package)
    if (known := _kept().get(key)) is None:
        known = _new[key] = _parsed(text, package, is_package)
    _used[key] = known
    return tuple(known)


def _parsed(text: bytes, package: str, is_package: bool) -> list[str]:
    found = []
    for node in _statements(ast.parse(text), functions=not is_package):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [one for one in found if one.partition(".")[0] in PACKAGES]


_new: dict[str, list[str]] = {}
_used: dict[str, list[str]] = {}


def _key(text: bytes, package: str, is_package: bool) -> str:
    """Of what determines the names: the rules of this module, too."""
    return hashlib.sha256(_rules() + f"{package} {is_package}\0".encode() + text).hexdigest()[:32]


@cache
def _rules() -> bytes:
    return hashlib.sha256(Path(__file__).read_bytes()).digest()


@cache
def _kept() -> dict[str, list[str]]:
    """What the cache has; nothing if that is no such file."""
    with suppress(OSError, ValueError, RuntimeError):  # RuntimeError: a user without a home
        found = json.loads((cache_dir() / KEPT).read_bytes())
        if isinstance(found, dict) and all(map(_is_names, found.values())):
            return found
    return {}


def _is_names(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(name, str) for name in found)


def _keep() -> None:
    """Put what is new into the cache, where it can be written."""
    if not _new:
        return
    together = _kept() | _new
    kept = together if len(together) <= MOST else _used
    with suppress(OSError, RuntimeError):
        path = cache_dir() / KEPT
        durable.make_directory(path.parent)
        durable.write(path, json.dumps(kept).encode())
    _kept().update(_new)
    _new.clear()


@cache
def file_of(module: str) -> Path | None:
    """The file of a module of PACKAGES; None when there is none of that name."""
    package, _, rest = module.partition(".")
    if package not in PACKAGES:
        return None
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    place = Path(spec.origin).parent.joinpath(*rest.split(".")) if rest else Path(spec.origin).parent
    for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if path.is_file():
            return path
    return None


def modules_below(package: str) -> list[str]:
    """A package and all modules in it, for one that finds its modules by looking."""
    path = file_of(package)
    assert path is not None
    home = path.parent
    names = [one.relative_to(home).with_suffix("").parts for one in home.rglob("*.py")]
    return [".".join([package, *(part for part in parts if part != "__init__")]) for parts in sorted(names)]


def _statements(node: ast.AST, *, functions: bool) -> Iterator[ast.stmt]:
    """A tree's statements, without what is only for type checkers; expressions are not looked at, which are most."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not functions:
        return
    blocks: Iterable[str] = _BLOCKS
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        blocks = ["orelse"]
    for block in blocks:
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from _statements(child, functions=functions)
