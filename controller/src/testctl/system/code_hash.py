# SPDX-License-Identifier: Apache-2.0
"""Hashes of code: of modules and of all that they import of this project, which is read from their text."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("testctl", "testctl_agent")


def hash_of(modules: Iterable[str]) -> str:
    """16 hex digits over the text of the modules and of what they import, however far away."""
    digest = hashlib.sha256()
    for name, path in sorted(closure(modules).items()):
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
    return found


def imports(path: Path, name: str = "") -> list[str]:
    """The modules that a Python file may import, in functions too; names of other things may be among them.

    Those in functions of an __init__.py are left out: they run for who asks for a name of the package, not for it.
    """
    is_package = path.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    found = []
    for node in _nodes(ast.parse(path.read_bytes(), str(path)), functions=not is_package):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [one for one in found if one.partition(".")[0] in PACKAGES]


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


def _nodes(node: ast.AST, *, functions: bool) -> Iterator[ast.AST]:
    """A tree's nodes, without what is only for type checkers."""
    yield node
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not functions:
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        children = iter(node.orelse)
    for child in children:
        yield from _nodes(child, functions=functions)
