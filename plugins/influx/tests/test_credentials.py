# SPDX-License-Identifier: Apache-2.0
"""Credentials: from a file that only its owner reads, or the environment; never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.spec.errors import PlanError
from testctl_influx.credentials import Credentials, find_credentials


def kept(where: Path, text: str, mode: int = 0o600) -> Path:
    path = where / "credentials.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_a_file_comes_before_the_environment(tmp_path: Path) -> None:
    file = kept(tmp_path, "user: writer\npassword: s3cret\n")
    environ = {"TESTCTL_INFLUX_TOKEN": "other"}
    assert find_credentials(file, environ) == Credentials(user="writer", password="s3cret")
    assert find_credentials(None, {**environ, "TESTCTL_INFLUX_CREDENTIALS": str(file)}).user == "writer"
    assert find_credentials(None, environ) == Credentials(token="other")
    assert find_credentials(None, {}).headers("1") == {}


def test_what_is_sent(tmp_path: Path) -> None:
    pair = find_credentials(None, {"TESTCTL_INFLUX_USER": "Aladdin", "TESTCTL_INFLUX_PASSWORD": "open sesame"})
    # RFC 7617, section 2.
    assert pair.headers("1") == {"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}
    assert "sesame" not in repr(pair)
    assert "sesame" not in str(pair)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o777, 0o700])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(PlanError, match=f"mode 0600; got {mode:04o}") as caught:
        find_credentials(kept(tmp_path, "token: s3cret\n", mode), {})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["- s3cret", "token: [s3cret", "tokn: s3cret", "token: s3cret\nuser: u", "password: s3cret", 'token: "s3cret\\n"'],
)
def test_a_file_that_is_not_understood_is_not_quoted(tmp_path: Path, text: str) -> None:
    with pytest.raises(PlanError, match=r"credentials\.yaml: want") as caught:
        find_credentials(kept(tmp_path, text), {})
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", ["0123", "yes", "[s3cret]", "1.50", "{a: s3cret}", "2024-01-01"])
@pytest.mark.parametrize("name", ["token", "password"])
def test_what_yaml_takes_for_no_text_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """As text it would be another password, which the server refuses without a reason."""
    user = "user: writer\n" if name == "password" else ""
    with pytest.raises(PlanError, match=rf"credentials\.yaml: {name}: want text, in quotes") as caught:
        find_credentials(kept(tmp_path, f"{user}{name}: {value}\n"), {})
    assert value not in str(caught.value)
    assert getattr(find_credentials(kept(tmp_path, f"{user}{name}: '{value}'\n"), {}), name) == value


def test_what_is_left_empty_is_not_given(tmp_path: Path) -> None:
    assert find_credentials(kept(tmp_path, "token: abc\nuser:\npassword: ''\n"), {}) == Credentials(token="abc")


def test_a_token_that_no_header_can_have_is_refused() -> None:
    with pytest.raises(PlanError, match="want a token in ASCII"):
        find_credentials(None, {"TESTCTL_INFLUX_TOKEN": "schl\u00fcssel"})
    pair = find_credentials(None, {"TESTCTL_INFLUX_USER": "j\u00f6rg", "TESTCTL_INFLUX_PASSWORD": "schl\u00fcssel"})
    assert pair.headers("1")["Authorization"].isascii()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"nowhere: can't read the credentials"):
        find_credentials(tmp_path / "nowhere", {})
