# SPDX-License-Identifier: Apache-2.0
"""A rack of real machines on one machine: each host and the switch is a QEMU with a kernel, GRUB and systemd of its own."""
