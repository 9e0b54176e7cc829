# SPDX-License-Identifier: Apache-2.0
"""A configuration from elsewhere, which make includes: what is let through starts nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testctl.lab import make
from testctl_agent.spec.errors import TestbedError
from testctl_rack import host_config, host_kernel
from testctl_rack.host_kernel import Wanted

MAKEFILE = """\
include auto.conf
all: in-words in-quotes in-rule
in-words:
\t-@./none $(CONFIG_X)
in-quotes:
\t-@./none "$(CONFIG_X)"
in-rule: $(CONFIG_X) $(if $(CONFIG_X),)
"""
"""What the kernel's makefiles do with a text: in words and in quotes of a command, in a rule, in a condition."""

ATTACKS = [
    "$(shell touch canary)", "$(file >canary)", "${shell touch canary}", "x; touch canary", "x & touch canary",
    "`touch canary`", "x | touch canary", "x > canary", 'x\\"; touch canary; \\"', "$$(touch canary)",
]  # fmt: skip
GOOD = [
    "", "(none)", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "elf64-x86-64",
    "-Wimplicit-fallthrough=5", "landlock,lockdown,yama", "/sbin/modprobe", "certs/signing_key.pem", "lzo-rle",
    "console=ttyS0,115200 root=/dev/sda1 mitigations=auto", "6.1.0-1@x",
]  # fmt: skip
FIRST = "#\n# Automatically generated file.\n#\nCONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=-5\n"


def passes(text: str) -> bool:
    try:
        host_config.check(text)
    except TestbedError:
        return False
    return True


def starts(text: str, where: Path) -> bool:
    """Whether make starts something because of an option of this text, in the form of include/config/auto.conf."""
    value = re.sub(r"\\(.)", r"\1", text)  # as Kconfig reads a text in quotes
    (where / "auto.conf").write_text(f"CONFIG_X={value}\n", encoding="utf-8")
    (where / "Makefile").write_text(MAKEFILE, encoding="ascii")
    subprocess.run(["make", "-s", "-k", "-C", str(where)], capture_output=True, check=False, timeout=60)
    extra = {path.name for path in where.iterdir()} - {"auto.conf", "Makefile"}
    for name in extra:
        (where / name).unlink()
    return bool(extra)


@pytest.mark.parametrize("text", ATTACKS)
def test_a_text_that_starts_something_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    assert starts(text, tmp_path)
    config = f'{FIRST}CONFIG_X="{text}"\nCONFIG_Y=y\n'
    wanted = Wanted("mine", tmp_path / "none", "6.12", config, None)
    with pytest.raises(TestbedError, match=r'configuration of a kernel, line 8: want .*; got .CONFIG_X="'):
        host_kernel.build(wanted, lambda *_: None, 1)


@pytest.mark.parametrize("text", GOOD)
def test_texts_of_real_configurations(text: str) -> None:
    host_config.check(f'{FIRST}CONFIG_X="{text}"\n')


@pytest.mark.parametrize(
    "line",
    [
        "X=y", "CONFIG_X=$(y)", "CONFIG_X=yes", "CONFIG_X", "CONFIG_X=", "CONFIG_X=0x", "CONFIG_X=1.5", 'CONFIG_X="',
        'CONFIG_X="a" b', "CONFIG_X=y # why", "CONFIG_X-Y=y", " CONFIG_X=y", "CONFIG_X=y\r", "CONFIG_X=y\\",
        'CONFIG_X="a\x85b"', "include /etc/passwd", "$(shell touch canary)", "CONFIG_X=\u0663",
    ],
)  # fmt: skip
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(TestbedError, match="line 8"):
        host_config.check(f"{FIRST}{line}\n")


WORDS = st.sampled_from([*ATTACKS, *GOOD, *"$`\\\"'();&|<>#=:,%@~*?[]{}!^ \t", "touch canary", "shell ", "\\\n", "a"])


@given(st.lists(st.one_of(WORDS, st.sampled_from([" ", "touch canary"])), max_size=8).map("".join))
@example("x;touch canary")
def test_what_passes_starts_nothing(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    if passes(f'CONFIG_X="{text}"\n'):
        assert not starts(text, tmp_path_factory.mktemp("make"))


@pytest.mark.parametrize(
    "option",
    [
        "ACPI_CUSTOM_DSDT_FILE", "BOOT_CONFIG_EMBED_FILE", "CFG80211_EXTRA_REGDB_KEYDIR", "EXTRA_FIRMWARE",
        "INITRAMFS_SOURCE", "IPE_BOOT_POLICY", "MODULE_SIG_KEY", "SYSTEM_BLACKLIST_HASH_LIST",
        "SYSTEM_REVOCATION_KEYS", "SYSTEM_TRUSTED_KEYS", "UNUSED_KSYMS_WHITELIST",
    ],
)  # fmt: skip
def test_files_of_this_machine_do_not_become_part_of_a_host_s_kernel(option: str) -> None:
    must, _ = host_config.fragments(types=False)
    have = {line for file in must for line in make.options(file) if option not in line} | {f'CONFIG_{option}="/root"'}
    assert [line.partition("=")[0] for line in host_kernel._missing(have, must)] == [f"CONFIG_{option}"]
