# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role kernel_router asks of a host, in check mode: nothing is changed."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOK = pathlib.Path(sys.executable).with_name("ansible-playbook")

pytestmark = pytest.mark.slow


def play(folder, **variables):
    values = {"kernel_router_journal_dir": str(folder / "journal"), **variables}
    tell = "{{ __kernel_router_values | combine(__kernel_router_optional_values) | to_json }}"
    tasks = [
        {"name": "Route", "ansible.builtin.include_role": {"name": "fastpath.bench.kernel_router", "public": True}},
        {
            "name": "Tell",
            "ansible.builtin.copy": {"content": tell, "dest": str(folder / "told"), "mode": "0600"},
            "check_mode": False,
        },
    ]
    book = folder / "play.json"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks, "vars": values}]))
    done = subprocess.run(
        [PLAYBOOK, book, "--check"], env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    done.output = " ".join((done.stdout + done.stderr).split())
    return done


def test_a_module_of_an_old_name_is_refused_with_its_successor(tmp_path):
    done = play(tmp_path, kernel_router_modules=["nf_conntrack_ipv4"])
    assert done.returncode == 2
    assert "another name today: nf_conntrack_ipv4. Use nf_conntrack." in done.output


def test_both_families_and_every_place_that_counts_are_set(tmp_path):
    done = play(tmp_path, kernel_router_interfaces=["lo"])
    assert done.returncode == 0, done.output
    told = json.loads((tmp_path / "told").read_text())
    # one key for each family: with one alone, the other spreads flows by other fields
    assert told["net/ipv4/fib_multipath_hash_policy"] == told["net/ipv6/fib_multipath_hash_policy"] == "1"
    # the larger of all and the interface's own counts, and a new interface begins with default
    assert {told[f"net/ipv4/conf/{name}/rp_filter"] for name in ("all", "default", "lo")} == {"0"}
    assert not (tmp_path / "journal").exists()
