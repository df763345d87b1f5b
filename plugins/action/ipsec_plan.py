# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of ipsec_plan: it asks no host, so none has to run it."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import options


class ActionModule(ActionBase):
    _requires_connection = False
    TRANSFERS_FILES = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _dummy, args = self.validate_argument_spec(argument_spec=options.PLAN_SPEC)
        try:
            result.update(changed=False, **options.planned(args))
        except BenchError as error:
            result.update(failed=True, **error.as_result())
        return result
