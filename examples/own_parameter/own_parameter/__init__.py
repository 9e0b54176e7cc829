# SPDX-License-Identifier: Apache-2.0
"""An example of parameters that another distribution adds to testctl's agents."""
