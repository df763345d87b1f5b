# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that talk to VPP share: connection options, the session, and how errors become results."""

from __future__ import annotations

import contextlib
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.parameters import env_fallback

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.daemon import warnings_about
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.session import (
    DEFAULT_SOCKET,
    DEFAULT_TIMEOUT_S,
    SOCKET_ENV,
    PapiSession,
)


def connection_spec() -> dict[str, t.Any]:
    """The options of the documentation fragment ``vpp``."""
    return {
        "api_socket": {"type": "path", "default": DEFAULT_SOCKET, "fallback": (env_fallback, [SOCKET_ENV])},
        "api_timeout_s": {"type": "float", "default": DEFAULT_TIMEOUT_S},
    }


@contextlib.contextmanager
def failing(module: AnsibleModule) -> t.Iterator[None]:
    """Turn the errors that the collection raises on purpose into the module's failure."""
    try:
        yield
    except BenchError as err:
        module.fail_json(**err.as_result())


@contextlib.contextmanager
def session_of(module: AnsibleModule) -> t.Iterator[PapiSession]:
    """The connection that the options describe; warns when the program on disk is not the one that runs."""
    timeout_s = module.params["api_timeout_s"]
    if timeout_s <= 0:
        raise BenchError(f"{timeout_s:g} is no time limit", where="api_timeout_s", remedy="Give seconds above 0")
    with PapiSession(module.params["api_socket"], timeout_s=timeout_s) as session:
        for text in warnings_about(session.pid()):
            module.warn(text)
        yield session


def warn_about(module: AnsibleModule, findings: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Findings that need attention are shown as warnings too."""
    for found in findings:
        if found["severity"] != "info":
            module.warn(f"{found['evidence']}. {found['remedy']}.")
