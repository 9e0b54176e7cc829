# SPDX-License-Identifier: Apache-2.0
"""A rack of machines on one machine: each host and the switch is a QEMU with its own kernel, GRUB and systemd."""
