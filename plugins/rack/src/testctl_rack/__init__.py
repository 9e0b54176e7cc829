# SPDX-License-Identifier: Apache-2.0
"""Racks: hosts and switches with an agent each, which an Ansible inventory lists, as a testbed of testctl."""
