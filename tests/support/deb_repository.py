# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signed repository for apt, with packages of the names that FD.io uses around a VPP that this machine has.

apt, gpg and dpkg are the real ones. The packages hold links to the VPP that is there and what the real packages
bring beside it: a unit, a startup.conf and the group (``extras/deb`` of VPP).
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import zipfile

COMPONENT = "main"
_UNIT = """\
[Unit]
Description=vector packet processing engine
After=network.target

[Service]
Type=simple
ExecStart=/usr/bin/vpp -c /etc/vpp/startup.conf
ExecStopPost=/bin/rm -f /dev/shm/db /dev/shm/global_vm /dev/shm/vpe-api
Restart=on-failure
RestartSec=5s

[Install]
WantedBy=multi-user.target
"""
_STARTUP = "unix { nodaemon cli-listen /run/vpp/cli.sock gid vpp }\napi-segment { gid vpp }\nsocksvr { default }\n"
# The real package asks debconf's environment the same way.
_POSTINST = """\
#!/bin/sh
set -e
getent group vpp >/dev/null || groupadd -r vpp
[ -n "$VPP_INSTALL_SKIP_SYSCTL" ] || touch /run/fastpath-test-sysctl-applied
"""


def missing() -> str | None:
    """Why no repository can be made here."""
    for program in ("gpg", "dpkg-deb"):
        if shutil.which(program) is None:
            return f"no {program}"
    return None


class Repository:
    """In ``folder``: ``www`` to be served, ``www/key.asc`` and ``www/other.asc`` (the key of somebody else)."""

    def __init__(self, folder: pathlib.Path, suite: str) -> None:
        self.folder, self.suite, self.www = folder, suite, folder / "www"
        self.pool = self.www / "pool"
        self.pool.mkdir(parents=True)
        self.environment = {**os.environ, "GNUPGHOME": str(folder / "gnupg")}
        (folder / "gnupg").mkdir(mode=0o700)
        for name in ("key", "other"):
            self._gpg("--quick-generate-key", f"{name}@test.example", "ed25519", "sign", "1d")
            (self.www / f"{name}.asc").write_bytes(self._gpg("--armor", "--export", f"{name}@test.example"))

    def _gpg(self, *arguments: str) -> bytes:
        command = ["gpg", "--batch", "--quiet", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", *arguments]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, timeout=60).stdout

    def stop(self) -> None:
        """End the agent that gpg has started."""
        subprocess.run(["gpgconf", "--kill", "all"], env=self.environment, check=False, timeout=30)

    def _package(self, name: str, version: str, files: dict[str, str], links: dict[str, str], script: str = "") -> None:
        root = self.folder / f"{name}-{version}"
        control = root / "DEBIAN"
        control.mkdir(parents=True)
        control.joinpath("control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: test <test@test.example>\n"
            f"Description: {name} of a test\n",
            encoding="utf-8",
        )
        for path, text in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for path, target in links.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(target)
        conffiles = [f"/{path}" for path in files if path.startswith("etc/")]
        if conffiles:
            control.joinpath("conffiles").write_text("\n".join(conffiles) + "\n", encoding="utf-8")
        if script:
            control.joinpath("postinst").write_text(script, encoding="utf-8")
            control.joinpath("postinst").chmod(0o755)
        target = self.pool / f"{name}_{version}_all.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(target)],
            check=True,
            capture_output=True,
            timeout=60,
        )

    def add_vpp(self, version: str, program: pathlib.Path, wheel: pathlib.Path) -> None:
        """The packages vpp, vpp-plugin-core and python3-vpp-api of one version."""
        files = {"usr/lib/systemd/system/vpp.service": _UNIT, "etc/vpp/startup.conf": _STARTUP}
        links = {f"usr/bin/{name}": str(program.parent / name) for name in ("vpp", "vppctl")}
        self._package("vpp", version, files, links, _POSTINST)
        self._package("vpp-plugin-core", version, {"usr/share/doc/vpp-plugin-core/README": "beside vpp\n"}, {})
        with zipfile.ZipFile(wheel) as archive:
            modules = {
                f"usr/lib/python3/dist-packages/{name}": archive.read(name).decode()
                for name in archive.namelist()
                if not name.endswith("/")
            }
        self._package("python3-vpp-api", version, modules, {})

    def publish(self) -> None:
        """Index and signature, as apt wants them."""
        entries = []
        for file in sorted(self.pool.glob("*.deb")):
            fields = subprocess.run(
                ["dpkg-deb", "--field", str(file)], check=True, capture_output=True, text=True, timeout=60
            ).stdout.strip()
            data = file.read_bytes()
            entries.append(
                f"{fields}\nFilename: pool/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
            )
        index = "\n".join(entries).encode()
        where = f"{COMPONENT}/binary-amd64/Packages"
        dist = self.www / "dists" / self.suite
        (dist / where).parent.mkdir(parents=True, exist_ok=True)
        (dist / where).write_bytes(index)
        release = dist / "Release"
        release.write_text(
            f"Suite: {self.suite}\nCodename: {self.suite}\nArchitectures: amd64 all\nComponents: {COMPONENT}\n"
            "Date: Thu, 01 Jan 2026 00:00:00 UTC\n"
            f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} {where}\n",
            encoding="utf-8",
        )
        self._gpg("--local-user", "key@test.example", "--output", str(dist / "InRelease"), "--clearsign", str(release))
