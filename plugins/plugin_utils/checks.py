# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible on the controller knows of the roles and modules that a matrix names."""

from __future__ import annotations

import importlib
import os
import pathlib
import typing as t

from ansible.constants import config
from ansible.parsing.dataloader import DataLoader
from ansible.utils.collection_loader._collection_finder import _get_collection_role_path

from ansible_collections.fastpath.bench.plugins.module_utils._bench.plan import Checks
from ansible_collections.fastpath.bench.plugins.module_utils._bench.shape import suggest
from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError

_ENDINGS = (".yml", ".yaml", ".json", "")


class AnsibleChecks(Checks):
    """Looks where Ansible would look."""

    def __init__(self, loader: DataLoader, hostvars: t.Mapping[str, t.Mapping[str, t.Any]]) -> None:
        self._loader = loader
        self._hostvars = hostvars
        self._defaults: dict[str, dict[str, t.Any]] = {}

    def role(self, name: str, entries: t.Sequence[str], where: str) -> None:
        tasks = self._path(name, where) / "tasks"
        missing = [entry for entry in entries if _file(tasks, entry) is None]
        if missing:
            raise BenchError(
                f"role {name!r} has no entry point {', '.join(missing)}",
                where=where,
                remedy=f"The engine uses tasks/{'.yml, tasks/'.join(entries)}.yml, see docs/matrix.md",
                code="no_entry_point",
            )

    def variables(self, role: str, names: t.Collection[str], where: str) -> None:
        folder = self._path(role, where)
        known = set(self._role_defaults(role, where))
        specs = self._load(folder / "meta", "argument_specs").get("argument_specs") or {}
        for entry in specs.values():
            known.update(entry.get("options") or {})
        if not known:
            return  # a role that does not tell which variables it has
        prefix = folder.name + "_"
        for name in names:
            if name.startswith(prefix) and name not in known:
                raise BenchError(
                    f"role {role!r} has no variable {name!r}",
                    where=where,
                    remedy=suggest(name, [other for other in known if other.startswith(prefix)]),
                    code="no_variable",
                )

    def trial(self, module: str, options: t.Mapping[str, t.Any], headline: str, where: str) -> None:
        if module.count(".") < 2:
            return  # a module beside the playbook or in the library path is not importable as Python
        namespace, collection, name = module.split(".", 2)
        path = f"ansible_collections.{namespace}.{collection}.plugins.modules.{name}"
        try:
            found = importlib.import_module(path)
        except ImportError as error:
            raise BenchError(
                f"the generator's module {module!r} cannot be loaded: {error}",
                where=where.replace("options", "generator"),
                remedy="Install its collection, or correct its name in bench_generators",
                code="no_module",
            ) from error
        check = getattr(found, "check_trial", None)
        if check is None:
            return
        try:
            check(options, headline)
        except BenchError as error:
            # where it is, in the words of the module, is the option
            what = f"{error.where}: {error.what}" if error.where else error.what
            raise BenchError(what, where=where, remedy=error.remedy, code=error.code) from error

    def unset(self, host: str, role: str, variable: str, where: str) -> t.Any:
        variables = self._hostvars[host]
        if variable in variables:
            return variables[variable]
        defaults = self._role_defaults(role, where)
        if variable not in defaults or _is_template(defaults[variable]):
            raise BenchError(
                f"{variable} is not set here and is in another set-up of this matrix, and its default in role {role} "
                f"{'is a template' if variable in defaults else 'is not known'}",
                where=where,
                remedy="Set it in both, or one set-up would keep the other's value",
                code="variable_left_over",
            )
        return defaults[variable]

    def _role_defaults(self, role: str, where: str) -> dict[str, t.Any]:
        if role not in self._defaults:
            self._defaults[role] = self._load(self._path(role, where) / "defaults", "main")
        return self._defaults[role]

    def _load(self, folder: pathlib.Path, name: str) -> dict[str, t.Any]:
        path = _file(folder, name)
        return (self._loader.load_from_file(str(path)) or {}) if path else {}

    def _path(self, name: str, where: str) -> pathlib.Path:
        """The folder of a role; searched for as Ansible's own RoleDefinition does."""
        if name.count(".") >= 2:
            found = _get_collection_role_path(name)
            if found is not None:
                return pathlib.Path(found[1])
        base = self._loader.get_basedir()
        folders = [os.path.join(base, "roles"), *(config.get_config_value("DEFAULT_ROLES_PATH") or ()), base]
        for folder in folders:
            path = pathlib.Path(folder, name)
            if path.is_dir():
                return path
        raise BenchError(
            f"there is no role {name!r}",
            where=where,
            remedy="Install its collection (namespace.collection.role), or have its folder in ANSIBLE_ROLES_PATH",
            code="no_role",
        )


def _file(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    return next((path for ending in _ENDINGS if (path := folder / f"{name}{ending}").is_file()), None)


def _is_template(value: t.Any) -> bool:
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, t.Mapping):
        return any(map(_is_template, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_is_template, value))
