# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sushy-tools' own emulator, with firmware settings for its fake driver.

Of its drivers only the one over libvirt has BIOS attributes, and that one applies them at once. So the fake driver gets
them here, as a server has them: what is written is pending, and a reset makes it current. All else (routes, templates,
authentication, systems, power states) is the emulator's own.

    python emulator.py FOLDER --port 8443 --ssl-certificate ... --ssl-key ...

FOLDER/settings.json is read at each request, so that a test can change the BMC's behaviour while it runs:
``delay_s`` before each answer, ``delay_after_patch_s`` from the first write on, ``read_only`` attributes that are
accepted and never change. Where there is FOLDER/manufacturer, the system says that it is of this make and not the
emulator's own.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
import typing as t

import flask
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems import fakedriver

FOLDER = pathlib.Path(sys.argv.pop(1))
UUID = fakedriver.DEFAULT_UUID
#: How long a restart takes, so that a test sees the time in between.
RESTART_S = 1.0


def settings() -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads((FOLDER / "settings.json").read_text()))


class Driver(fakedriver.FakeDriver):
    """The fake driver with BIOS attributes, kept in files so that a test sees what the firmware has."""

    def _file(self, which: str) -> pathlib.Path:
        return FOLDER / f"{which}.json"

    def _attributes(self, which: str) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads(self._file(which).read_text()))

    def get_bios(self, identity: str) -> dict[str, t.Any]:
        self._get(identity)
        return self._attributes("current")

    def get_pending(self, identity: str) -> dict[str, t.Any]:
        return {**self.get_bios(identity), **self._attributes("pending")}

    def set_bios(self, identity: str, attributes: dict[str, t.Any]) -> None:
        accepted = {k: v for k, v in attributes.items() if k not in settings().get("read_only", [])}
        self._file("pending").write_text(json.dumps({**self._attributes("pending"), **accepted}))

    def set_power_state(self, identity: str, state: str) -> None:
        with (FOLDER / "resets").open("a") as file:
            file.write(f"{state}\n")
        super().set_power_state(identity, state)
        system = self._get(identity)
        if system.get("pending_power"):
            system["pending_power"]["apply_time"] = time.time() + RESTART_S
            self._update(system)

    def _update_if_needed(self, system: dict[str, t.Any]) -> dict[str, t.Any]:
        due = system.get("pending_power")
        system = super()._update_if_needed(system)
        if due and not system.get("pending_power") and system["power_state"] == "On":
            self._file("current").write_text(json.dumps(self.get_pending(system["uuid"])))
            self._file("pending").write_text("{}")
        return system


fakedriver.FakeDriver = Driver
shown = emulator.app.view_functions["bios_settings"]


def bios_settings(identity: str) -> t.Any:
    """The emulator shows the current attributes as the pending ones; a server shows what waits for a reset."""
    if flask.request.method == "PATCH":
        (FOLDER / "wrote").touch()
        return shown(identity=identity)
    answer = shown(identity=identity)
    body = json.loads(answer[0] if isinstance(answer, tuple) else answer.get_data())
    body["Attributes"] = emulator.app.systems.get_pending(identity)
    return flask.jsonify(body)


emulator.app.view_functions["bios_settings"] = bios_settings


@emulator.app.before_request
def slow() -> None:
    now = settings()
    time.sleep(now.get("delay_s", 0) + (now.get("delay_after_patch_s", 0) if (FOLDER / "wrote").exists() else 0))


@emulator.app.after_request
def name_the_make(response: flask.Response) -> flask.Response:
    if flask.request.endpoint == "system_resource" and (FOLDER / "manufacturer").exists() and response.is_json:
        response.set_data(json.dumps({**response.get_json(), "Manufacturer": (FOLDER / "manufacturer").read_text()}))
    return response


if __name__ == "__main__":
    sys.exit(emulator.main())
