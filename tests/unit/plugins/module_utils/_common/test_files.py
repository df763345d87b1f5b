# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.fastpath.bench.plugins.module_utils._common import files


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("mode", [None, 0o600, 0o755])
def test_a_file_is_replaced_and_nothing_is_left_beside(tmp_path, mode, durable):
    path = tmp_path / "it"
    path.write_text("old and longer")
    files.replace_file(path, b"new", mode=mode, durable=durable)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["it"]
    if mode is not None:
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_failure_leaves_what_was_there_and_nothing_beside(tmp_path, monkeypatch):
    path = tmp_path / "it"
    path.write_text("old")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.replace_file(path, b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["it"]


def test_a_link_that_somebody_laid_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / f".it.{os.getpid()}.tmp").symlink_to(victim)
    files.replace_file(tmp_path / "it", b"new", mode=0o600)
    assert victim.read_text() == "kept"
    assert (tmp_path / "it").read_bytes() == b"new"


def test_a_name_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.replace_file("it", b"new")
    assert (tmp_path / "it").read_bytes() == b"new"
