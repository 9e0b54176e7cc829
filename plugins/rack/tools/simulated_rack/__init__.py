# SPDX-License-Identifier: Apache-2.0
"""A rack on one machine, to try deployment on: each host is a set of namespaces with an SSH server."""
