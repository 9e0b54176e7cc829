# SPDX-License-Identifier: Apache-2.0
"""From two revisions of a kernel tree, one good and one bad by a plan, to the commit between them that changed it."""
