# SPDX-License-Identifier: Apache-2.0
"""The messages of P4Runtime, from the PyPI package `p4runtime`, whatever protobuf is installed.

The package's generated modules (1.6.0 and before) are refused by protobuf 4 and later.  What they
carry is right all the same: each holds its file's serialised descriptor as a literal, which is read
here without running the module.  The pool is private, so nothing clashes with other users of
protobuf.  Source: FileDescriptorProto in google/protobuf/descriptor.proto.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

_FILES = ("p4.v1.p4data", "p4.config.v1.p4types", "p4.config.v1.p4info", "p4.v1.p4runtime")
_STATUS = "google/rpc/status.proto"


def _module_text(name: str) -> str:
    """The source of an installed module, which is not imported."""
    package, _, last = name.rpartition(".")
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / f"{last}_pb2.py"
        if path.exists():
            return path.read_text(encoding="utf-8")
    raise ModuleNotFoundError(name)


def _descriptor(text: str) -> bytes:
    """The longest literal of bytes in a generated module: its file's descriptor."""
    literals = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return max((value for value in literals if isinstance(value, bytes)), key=len, default=b"")


def _status_file() -> bytes:
    """google.rpc.Status, which P4Runtime's file names and the wire has in details of errors (AIP-193)."""
    file = descriptor_pb2.FileDescriptorProto(name=_STATUS, package="google.rpc", syntax="proto3")
    file.dependency.append("google/protobuf/any.proto")
    status = file.message_type.add(name="Status")
    field = descriptor_pb2.FieldDescriptorProto
    status.field.add(name="code", number=1, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    status.field.add(name="message", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    status.field.add(
        name="details", number=3, type=field.TYPE_MESSAGE, label=field.LABEL_REPEATED, type_name=".google.protobuf.Any"
    )
    return file.SerializeToString()


@functools.cache
def _messages() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_status_file())
    found: dict[str, Any] = {}
    names = []
    for name in _FILES:
        data = _descriptor(_module_text(name))
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
        pool.AddSerializedFile(data)
        names += [f"{file.package}.{message.name}" for message in file.message_type]
    for name in [*names, "google.rpc.Status"]:
        found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return found


def message(name: str) -> Any:
    """The class of a message, such as "p4.v1.WriteRequest".  Raises ModuleNotFoundError."""
    return _messages()[name]
