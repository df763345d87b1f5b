# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one home of the folders that the collection uses on a host."""

from __future__ import annotations

#: Survives a reboot: the journal of found settings, trials not yet collected.
STATE_DIR = "/var/lib/fastpath-bench"
JOURNAL_DIR = STATE_DIR + "/journal"
SPOOL_DIR = STATE_DIR + "/spool"
#: Python packages that a role brought, as wheels.
WHEEL_DIR = STATE_DIR + "/wheels"
#: What dperf uses on this host: its program, network cards and CPUs.
DPERF_FILE = STATE_DIR + "/dperf.json"

#: Gone after a reboot: background samplers, server instances, path responders.
RUN_DIR = "/run/fastpath-bench"
SAMPLE_DIR = RUN_DIR + "/sample"
IPERF_DIR = RUN_DIR + "/iperf"
PATH_DIR = RUN_DIR + "/path"
SINK_DIR = RUN_DIR + "/sink"
SOURCE_DIR = RUN_DIR + "/source"
CONNECTION_DIR = RUN_DIR + "/connection"
DPERF_DIR = RUN_DIR + "/dperf"
#: The batch of trials that runs on this client, if any.
BATCH_FILE = RUN_DIR + "/batch.json"

#: Where the one-machine lab keeps what belongs to each lab (host side).
LAB_DIR = "/run/fastpath-lab"

#: What takes long to make and can be made again at any time: disk images of the lab's virtual machines.
CACHE_DIR = "/var/cache/fastpath-bench"
IMAGE_DIR = CACHE_DIR + "/images"
