# SPDX-License-Identifier: Apache-2.0
"""Whatever text an agent answers with, in whatever field: commands print sentences, and no terminal control."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from testctl.system.say import say
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.daemon.boot_notes import BOOT, WAS
from testctl_agent.spec.errors import TestctlError
from testctl_agent.system.identity import version
from testctl_rack import kernels, menus, pki, rack_status, reservation
from testctl_rack import rack as rack_module
from testctl_rack.answers import FREE, PATTERNS, OddAnswer, checked
from testctl_rack.cli import racks
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement
from testctl_rack.reservation import Reservation

TEXTS = (
    "\x1b]0;owned\x07\x1b[2J", "\x9b31m", "\u202etxet", "a\r\nb\x08", "\x7f", "6.1 init=/x\n}\nmenuentry 'x' {",
    "link ", "{{ lookup('pipe', 'id') }}", "x" * 300,
)  # fmt: skip
SHOWN = {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x08", "\x7f"}
METHODS = pb.DESCRIPTOR.services_by_name["Agent"].methods
VERSION = version()
SETTING = pb.Setting(entity="alpha", parameter="mtu", value=pb.Value(text="x"))


def usual() -> dict[str, Any]:
    """An answer to each method, in which every field is set."""
    notes = {BOOT: "0" * 8 + "-0000-0000-0000-" + "0" * 12, WAS: "6.1.0-56-amd64", "tool": "1.0"}
    capability = pb.Capability(parameter="mtu", entity="alpha", missing="why", value=pb.Value(text="x"))
    status = pb.TaskStatus(ended=True, error="why", result="{}", files=["x"])
    lease = pb.Lease(token="ab", holder="ann", lifetime_ns=1, time_ns=1)
    return {
        "Description": pb.Description(name="alpha", kind="host", version=VERSION, kernel="6.12.117+deb12-amd64",
                                      capabilities=[capability], notes=notes),
        "ApplyReply": pb.ApplyReply(before=[SETTING], after=[SETTING]),
        "RestoreReply": pb.RestoreReply(restored=[SETTING]),
        "StartReply": pb.StartReply(files=["x"]),
        "TaskStatus": status,
        "Chunk": pb.Chunk(data=b"x", sha256="ab"),
        "Attestation": pb.Attestation(facts={"link lo mtu": "65536"}),
        "Lease": lease,
        "BootReply": pb.BootReply(),
        "QueueReply": pb.QueueReply(before=1, leased_to="ann", places=[pb.QueuePlace(holder="ann")]),
        "ReleaseReply": pb.ReleaseReply(restored=[SETTING]),
    }  # fmt: skip


Put = Callable[[Any, str], None]


def _parts(answer: Any, field: FieldDescriptor) -> list[Any]:
    found = getattr(answer, field.name)
    return list(found) if hasattr(found, "append") else [found]


def texts_of(kind: Descriptor) -> Iterator[tuple[str, Put]]:
    """Every text of a message: its name, and what puts one there."""
    for field in kind.fields:
        name = f"{kind.name}.{field.name}"
        if field.message_type and field.message_type.GetOptions().map_entry:
            assert field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING, name

            def key(answer: Any, text: str, field: FieldDescriptor = field) -> None:
                getattr(answer, field.name)[text] = "x"

            yield f"{name}, a name", key
            for known in sorted(usual()[kind.name].notes) if kind.name == "Description" else ["link lo mtu"]:

                def value(answer: Any, text: str, field: FieldDescriptor = field, known: str = known) -> None:
                    getattr(answer, field.name)[known] = text

                yield f"{name}[{known}]", value
        elif field.message_type:
            for inner, put in texts_of(field.message_type):

                def within(answer: Any, text: str, field: FieldDescriptor = field, put: Put = put) -> None:
                    for one in _parts(answer, field):
                        put(one, text)

                yield inner, within
        elif field.type == FieldDescriptor.TYPE_STRING:

            def plain(answer: Any, text: str, field: FieldDescriptor = field) -> None:
                found = getattr(answer, field.name)
                if hasattr(found, "append"):
                    found.append(text)
                else:
                    setattr(answer, field.name, text)

            yield name, plain


PLACES = [(method.output_type.name, *one) for method in METHODS for one in texts_of(method.output_type)]
PLACES = list({(kind, name): (kind, name, put) for kind, name, put in PLACES}.values())


def texts_in(answer: Any) -> Iterator[str]:
    for field, value in answer.ListFields():
        if field.message_type and field.message_type.GetOptions().map_entry:
            yield from (text for pair in value.items() for text in pair)
        elif field.message_type:
            for one in _parts(answer, field):
                yield from texts_in(one)
        elif field.type == FieldDescriptor.TYPE_STRING:
            yield from _parts(answer, field)


def test_the_usual_answers_have_the_shape() -> None:
    for kind, answer in usual().items():
        assert checked(answer) == usual()[kind]
    assert {method.output_type.name for method in METHODS} == set(usual())
    names = {name.removesuffix(f"[{key}]") for _, name, _ in PLACES for key in ("tool", "link lo mtu", BOOT, WAS)}
    assert names >= FREE, "of a field that is not there"
    assert {name for _, name, _ in PLACES} >= set(PATTERNS)


@pytest.mark.parametrize(("kind", "name", "put"), PLACES, ids=[f"{kind}: {name}" for kind, name, _ in PLACES])
def test_every_text_is_cleaned_or_refused(kind: str, name: str, put: Put) -> None:
    for text in TEXTS:
        answer = usual()[kind]
        put(answer, text)
        try:
            checked(answer)
        except OddAnswer:
            continue
        assert name.partition("[")[0] in FREE or text.isprintable() or name == "Value.text", (name, text)
        assert not SHOWN & {character for one in texts_in(answer) for character in one}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none(number: float) -> None:
    with pytest.raises(OddAnswer, match=r"Value\.number: want a finite number"):
        checked(pb.ApplyReply(after=[pb.Setting(entity="alpha", parameter="mtu", value=pb.Value(number=number))]))


class Liar:
    """Host alpha's agent on the loopback, with a text of one's choice in answers of a kind, or in refusals."""

    def __init__(self, where: Path) -> None:
        pki.make(where, ["alpha"])
        self.kind, self.put, self.text, self.refuses = "", lambda answer, text: None, "", False  # type: tuple[str, Put, str, bool]
        handlers = {method.name: self._handler(method) for method in METHODS}
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("testctl.v1.Agent", handlers)])
        pair = [((where / "alpha.key").read_bytes(), (where / "alpha.crt").read_bytes())]
        trusted = (where / "ca.crt").read_bytes()
        port = self.server.add_secure_port(
            "127.0.0.1:0", grpc.ssl_server_credentials(pair, trusted, require_client_auth=True)
        )
        self.server.start()
        self.rack = Rack(where, {"alpha": Machine("alpha", "host", f"127.0.0.1:{port}", device="lo")}, where)

    def _handler(self, method: Any) -> Any:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if self.refuses:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, self.text)
            found = usual()[method.output_type.name]
            if method.output_type.name == self.kind:
                self.put(found, self.text)
            return found

        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            yield answer(request, context)

        what = {"request_deserializer": getattr(pb, method.input_type.name).FromString,
                "response_serializer": getattr(pb, method.output_type.name).SerializeToString}  # fmt: skip
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(stream, **what)
        return grpc.unary_unary_rpc_method_handler(answer, **what)


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Liar]:
    found = Liar(tmp_path_factory.mktemp("rack"))
    yield found
    found.server.stop(None)


def commands(liar: Liar) -> Iterator[Callable[[], object]]:
    """What asks the agents of a rack, as the commands do it; errors are printed by the command line's main."""
    path, machines = liar.rack.path, list(liar.rack.machines.values())
    yield lambda: racks.status(path)
    yield lambda: racks.restore(path, 0.0)
    yield lambda: rack_module.check(liar.rack, machines)
    yield lambda: Reservation(liar.rack, machines, "bob", 0.01).take()
    yield lambda: RemoteAgents(liar.rack, Placement(liar.rack.machines), "bob").__enter__().__exit__(None, None, None)


@pytest.fixture
def lying(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> Liar:
    for module in (rack_status, rack_module):
        monkeypatch.setattr(module, "read_rack", lambda path: liar.rack)
    monkeypatch.setattr(reservation, "LOOK_S", 0.01)
    running = {"kernels": [], "running": "6.12.117+deb12-amd64", "was": "6.1.0-56-amd64", "default": ""}
    monkeypatch.setattr(menus, "on_hosts", lambda *_: {"alpha": running})
    monkeypatch.setattr(kernels, "on_hosts", lambda *_: {"alpha": {"error": liar.text}})
    liar.kind, liar.refuses = "", False
    return liar


def prints(liar: Liar, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command prints sentences: no traceback of a bug, no terminal control, no line of the agent's own."""
    for command in commands(liar):
        try:
            command()
        except (TestctlError, SystemExit) as error:
            print(error, file=sys.stderr)
        output = "".join(capsys.readouterr())
        assert not SHOWN & set(output), (liar.kind, liar.text, output)


PRINTED = ("Description", "Attestation", "Lease", "QueueReply", "RestoreReply", "ReleaseReply")
AT = [one for one in PLACES if one[0] in PRINTED]


@pytest.mark.parametrize(("kind", "name", "put"), AT, ids=[f"{kind}: {name}" for kind, name, _ in AT])
@pytest.mark.parametrize("text", [TEXTS[0] + TEXTS[1] + TEXTS[2], TEXTS[3], TEXTS[5], TEXTS[6]])
def test_no_command_prints_a_control(
    lying: Liar, capsys: pytest.CaptureFixture[str], kind: str, name: str, put: Put, text: str
) -> None:
    lying.kind, lying.put, lying.text = kind, put, text
    prints(lying, capsys)


@pytest.mark.parametrize("text", TEXTS)
def test_nor_of_a_refusal(lying: Liar, capsys: pytest.CaptureFixture[str], text: str) -> None:
    lying.refuses, lying.text = True, text
    prints(lying, capsys)


def test_what_is_said_has_no_control(capsys: pytest.CaptureFixture[str]) -> None:
    for text in TEXTS:
        say(text)
        assert not SHOWN & set(capsys.readouterr().err)
