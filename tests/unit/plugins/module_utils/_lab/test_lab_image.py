# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._lab import accel, image
from ansible_collections.fastpath.bench.plugins.module_utils._lab.machine import LabError

RECIPE = image.Recipe("debian", "bookworm", "x86_64", ("openssh-server", "python3"))

PARAGRAPHS = """# our mirrors
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites:
 bookworm-security
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://vendor.example/apt
Suites: tool-bookworm
Components: main
"""


@pytest.fixture
def images(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(image, "IMAGE_DIR", str(tmp_path / "images"))
    return tmp_path / "images"


def test_the_mirrors_are_the_machines_own_and_of_no_vendor(tmp_path: pathlib.Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(PARAGRAPHS)
    (tmp_path / "sources.list.d" / "old.list").write_text("deb http://other.example/debian bookworm main # comment\n")
    (tmp_path / "sources.list.d" / "old.list.save").write_text("deb http://no.example/debian bookworm main\n")
    (tmp_path / "sources.list").write_text(
        "# deb http://no.example/debian bookworm main\ndeb-src http://no.example/debian bookworm main\n"
    )
    signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    assert image.mirrors("bookworm", str(tmp_path)) == [
        f"deb {signed}http://mirror.example/debian bookworm main contrib",
        f"deb {signed}http://mirror.example/debian bookworm-updates main contrib",
        "deb http://mirror.example/debian-security bookworm-security main",
        "deb http://other.example/debian bookworm main",
    ]
    with pytest.raises(LabError, match="apt has no source of trixie"):
        image.mirrors("trixie", str(tmp_path))


def test_the_release_of_the_machine() -> None:
    assert image.parse_os_release('ID=debian\nVERSION_CODENAME="bookworm"\n\n#X=1\n') == {
        "ID": "debian",
        "VERSION_CODENAME": "bookworm",
    }


def test_a_system_without_an_image_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_read", lambda path: "ID=rocky\nVERSION_ID=9\n")
    with pytest.raises(LabError, match=r"cannot be built on rocky on .* Known are debian on x86_64"):
        image.recipe([])


def test_the_key_is_of_the_content_and_of_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "_read", lambda path: "ID=debian\nVERSION_CODENAME=bookworm\n")
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "x", "6", "1", "x86_64")))
    one = image.recipe(["strongswan-swanctl", "charon-systemd"])
    assert one.key == image.recipe(["charon-systemd", "strongswan-swanctl", "python3"]).key
    assert one.key != image.recipe([]).key
    assert "linux-image-cloud-amd64" in one.packages


def test_the_build_dies_with_its_caller_and_leaves_no_setting_of_apt() -> None:
    argv = image.bootstrap_command(
        RECIPE, "/x/root", "/x/over lay", ["deb http://m bookworm main"], ['Acquire::a "b";']
    )
    assert argv[:4] == ["setpriv", "--pdeathsig", "KILL", "--"]
    assert "--kill-child" in argv
    assert '--aptopt=Acquire::a "b"' in argv
    assert "--include=openssh-server,python3" in argv
    assert any("99mmdebstrap" in word and word.startswith("--customize-hook") for word in argv)
    assert "--essential-hook=cp -a '/x/over lay'/. \"$1\"/" in argv
    assert argv[-3:] == ["bookworm", "/x/root", "deb http://m bookworm main"]


def test_it_appears_whole_or_not_at_all(images: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(wanted: image.Recipe, new: image.Image) -> None:
        made.append(new.folder)
        pathlib.Path(new.disk).write_text("disk")
        assert not image.image(wanted.key).exists()
        if len(made) == 1:
            raise LabError("no mirror answers")

    monkeypatch.setattr(image, "_make", make)
    with pytest.raises(LabError, match="no mirror answers"):
        image.build(RECIPE)
    assert [entry.name for entry in images.iterdir()] == [f"{RECIPE.key}.lock"]
    assert image.keys() == []
    done = image.build(RECIPE)
    assert pathlib.Path(done.disk).read_text() == "disk"
    assert image.keys() == [RECIPE.key]
    image.build(RECIPE)
    assert len(made) == 2


def test_what_a_killed_call_left_is_removed_and_what_is_at_work_is_not(
    images: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "_make", lambda wanted, new: None)
    for name in (f"{RECIPE.key}.new-x", "dead.new-x", "busy.new-x"):
        (images / name / "root").mkdir(parents=True)
    with open(images / "busy.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        image.build(RECIPE)
    assert sorted(entry.name for entry in images.iterdir() if entry.is_dir()) == [RECIPE.key, "busy.new-x"]


def test_the_scripts_of_the_image_are_shell() -> None:
    for path, (text, mode) in image.FILES.items():
        if text.startswith("#!/bin/sh"):
            assert mode == 0o755, path
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)


# -- KVM ---------------------------------------------------------------------------------------------------

FAKE_QEMU = """#!/bin/sh
[ "$1" = --version ] && {{ echo "QEMU emulator version 9"; exit; }}
echo x >>{folder}/calls
for word; do case $word in file:*) console=${{word#file:}};; esac; done
{body}
"""


@pytest.mark.parametrize(
    ("body", "works", "why"),
    [
        ('echo "Kernel panic: Attempted to kill init! exitcode=0x00000000" >"$console"', True, ""),
        ("sleep 60", False, "did not come to its first program within 0.5 s"),
        ("echo no KVM >&2; exit 1", False, "qemu ended with 1: no KVM"),
    ],
)
def test_kvm_counts_only_when_a_guest_boots(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, body: str, works: bool, why: str
) -> None:
    fake = tmp_path / "bin" / accel.QEMU
    fake.parent.mkdir()
    fake.write_text(FAKE_QEMU.format(folder=tmp_path, body=body))
    fake.chmod(0o755)
    device = tmp_path / "kvm"
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(accel, "KVM_DEVICE", str(device))
    monkeypatch.setattr(accel, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(accel.probe, "__defaults__", (0.5,))
    some = image.Image("/no/image")
    assert accel.choose(some) == accel.TCG
    assert not (tmp_path / "calls").exists()
    device.touch()
    for _twice in range(2):
        assert accel.choose(some) == (accel.KVM if works else accel.TCG)
    assert (tmp_path / "calls").read_text() == "x\n"
    assert why in (tmp_path / "cache" / "kvm.json").read_text()
