# SPDX-License-Identifier: Apache-2.0
"""TCP's internals at every ACK and transmission: by the lab's kernel, or by BPF on a running one."""
