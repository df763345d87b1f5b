# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running BMC: the emulator with certificate, account and firmware settings of its own."""

from __future__ import annotations

import json
import pathlib
import secrets
import socket
import subprocess
import sys
import time
import typing as t

import bcrypt

EMULATOR = pathlib.Path(__file__).with_name("emulator.py")
ATTRIBUTES = {
    "WorkloadProfile": "GeneralPowerEfficientCompute",
    "PowerRegulator": "DynamicPowerSavings",
    "ProcHyperthreading": "Enabled",
}
USER = "operator"


class Bmc:
    def __init__(self, folder: pathlib.Path, manufacturer: str | None = "HPE", name: str = "dut") -> None:
        """:param manufacturer: of the server that it plays; None to say that it is an emulator."""
        self.folder = folder
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        if manufacturer is not None:
            (folder / "manufacturer").write_text(manufacturer)
        self.password = f"bmc-{secrets.token_hex(12)}"
        self.certificate = folder / "cert.pem"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._prepare()

    def _prepare(self) -> None:
        (self.folder / "state").mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=self.folder, check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        hashed = bcrypt.hashpw(self.password.encode(), bcrypt.gensalt(4)).decode()
        (self.folder / "accounts").write_text(f"{USER}:{hashed}\n")
        system = {"uuid": "27946b59-9e44-4fa7-8e91-f3527a1ef094", "name": self.name, "power_state": "On", "nics": []}
        (self.folder / "emulator.conf").write_text(
            f"SUSHY_EMULATOR_AUTH_FILE = {str(self.folder / 'accounts')!r}\n"
            f"SUSHY_EMULATOR_STATE_DIR = {str(self.folder / 'state')!r}\n"
            f"SUSHY_EMULATOR_FAKE_SYSTEMS = [{system!r}]\n"
        )
        self.write("current", ATTRIBUTES)
        self.write("pending", {})
        self.write("settings", {})

    def write(self, which: str, values: dict[str, t.Any]) -> None:
        (self.folder / f"{which}.json").write_text(json.dumps(values))

    def read(self, which: str) -> dict[str, t.Any]:
        return t.cast("dict[str, t.Any]", json.loads((self.folder / f"{which}.json").read_text()))

    @property
    def resets(self) -> list[str]:
        path = self.folder / "resets"
        return path.read_text().split() if path.exists() else []

    def start(self) -> None:
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(EMULATOR), str(self.folder), "--config", "emulator.conf", "--fake",
             "--interface", "127.0.0.1", "--port", str(self.port),
             "--ssl-certificate", "cert.pem", "--ssl-key", "key.pem"],
            # a key pressed at the terminal is not for it
            cwd=self.folder, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        log.close()
        for _attempt in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def variables(self) -> dict[str, t.Any]:
        """Those of the role power_profile."""
        return {
            "power_profile_backends": ["bmc"],
            "power_profile_bmc_baseuri": f"127.0.0.1:{self.port}",
            "power_profile_bmc_username": USER,
            "power_profile_bmc_password": self.password,
            "power_profile_bmc_ca_path": str(self.certificate),
            "power_profile_bmc_wait_for_host": False,
            "power_profile_bmc_wait_s": 60,
            "power_profile_bmc_timeout_s": 30,
            "power_profile_record_dir": str(self.folder / "record"),
        }
