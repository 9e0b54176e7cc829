# SPDX-License-Identifier: Apache-2.0
"""`testctl serve`: results/ in a browser, read-only.  Loaded by that command alone."""
