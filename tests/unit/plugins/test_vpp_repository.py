# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role vpp says to apt about FD.io's repository, from the role's own variables and template."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "vpp"


def render(distribution: str, suite: str, family: str = "Debian", **given: t.Any) -> dict[str, t.Any]:
    """The role's variables as a host of this distribution has them, and its source for apt."""
    loader = DataLoader()
    values: dict[str, t.Any] = {}
    for name in ("defaults", "vars"):
        values.update(loader.load_from_file(str(ROLE / name / "main.yml"), trusted_as_template=True))
    values["ansible_facts"] = {"distribution": distribution, "distribution_release": suite, "os_family": family}
    values["ansible_managed"] = "managed"
    templar = Templar(loader, variables={**values, **given})
    text = templar.template(trust_as_template((ROLE / "templates" / "fdio.sources.j2").read_text(encoding="utf-8")))
    names = ("vpp_repository_url", "vpp_suite", "__vpp_pinned", "__vpp_keyring")
    return {"text": text, **{name: templar.template(trust_as_template("{{ " + name + " }}")) for name in names}}


def fields(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if line and not line.startswith("#"))


@pytest.mark.parametrize(
    ("distribution", "own", "taken"),
    [
        ("Ubuntu", "jammy", "jammy"),
        ("Ubuntu", "noble", "noble"),
        ("Ubuntu", "resolute", "noble"),  # 26.04: nothing is published for it
        ("Debian", "bookworm", "bookworm"),
        ("Debian", "trixie", "bookworm"),
    ],
)
def test_a_suite_that_is_not_published_takes_the_newest_one_that_is(distribution: str, own: str, taken: str) -> None:
    found = fields(render(distribution, own)["text"])
    assert found["Types"] == "deb"
    assert found["Suites"] == taken
    assert found["URIs"].startswith("https://")
    assert found["URIs"].endswith(f"/fdio/release/{distribution.lower()}/")
    assert found["Signed-By"] == "/etc/apt/keyrings/fdio.asc"


def test_what_the_user_says_counts() -> None:
    mirror = "https://mirror.example/fdio/"
    asked = render("Ubuntu", "resolute", vpp_suite="jammy", vpp_repository_url=mirror, vpp_version="26.06")
    assert fields(asked["text"])["Suites"] == "jammy"
    assert fields(asked["text"])["URIs"] == mirror
    assert asked["__vpp_pinned"] == ["vpp=26.06*", "vpp-plugin-core=26.06*"]
    assert render("Rocky", "", "RedHat", vpp_version="26.06")["__vpp_pinned"] == ["vpp-26.06*", "vpp-plugins-26.06*"]


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get here")
def test_apt_reads_the_source_as_it_was_meant(tmp_path: pathlib.Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "fdio.sources").write_text(render("Ubuntu", "resolute")["text"], encoding="utf-8")
    options = [f"Dir::Etc::sourceparts={parts}", "Dir::Etc::sourcelist=/dev/null", f"Dir::State={tmp_path}"]
    # says what it would fetch, and fetches nothing
    command = ["apt-get", "update", "--print-uris", *(word for option in options for word in ("-o", option))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    fetched = [line.split("'")[1] for line in done.stdout.splitlines()]
    assert fetched[0].endswith("/fdio/release/ubuntu/dists/noble/InRelease")
    assert all("/dists/noble/main/" in url for url in fetched[1:])
