# SPDX-License-Identifier: Apache-2.0
"""An agent's replies as messages of daemon/agent.proto."""

from __future__ import annotations

from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.spec.errors import TestctlError
from testctl_agent.wire import messages
from testctl_agent.wire.messages import plain


def setting(setting: Setting) -> messages.Setting:
    """A parameter and its value."""
    return messages.Setting(entity=setting.entity, parameter=setting.parameter, value=plain(setting.value))


def capability(engine: Engine, entity: str, parameter: str) -> messages.Capability:
    """What a parameter is, or why it can't be set; one that can't be read can't be set."""
    missing = engine.unavailable(entity, parameter)
    try:
        value = None if missing else plain(engine.read(entity, parameter))
    except (TestctlError, OSError) as error:
        missing, value = str(error), None
    return messages.Capability(parameter=parameter, entity=entity, missing=missing, value=value)
