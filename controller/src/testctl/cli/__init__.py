# SPDX-License-Identifier: Apache-2.0
from testctl.system.garbage import look_seldom

look_seldom()  # before the commands are imported
