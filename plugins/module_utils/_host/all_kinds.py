# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Importing this makes every kind of setting known, which a restore needs."""

from __future__ import annotations

from ansible_collections.fastpath.bench.plugins.module_utils._host import (
    address,
    cpufreq,
    cpuidle,
    ethtool,
    hugepages,
    irq,
    kernel_args,
    kernel_file,
    link,
    netem,
    nic_params,
    owners,
    pci,
    queue,
    route,
    rss,
    sysctl,
)
from ansible_collections.fastpath.bench.plugins.module_utils._ipsec import knobs as ipsec

KINDS = (
    *(sysctl.Sysctl, kernel_file.SysFile, kernel_file.ProcFile),
    *(link.Mtu, link.Up, link.Promisc, link.TxQueueLength, link.XskProgram, address.Addresses, route.Route),
    *(ethtool.Features, ethtool.ChannelCounts, queue.RpsMask, queue.XpsMask, queue.RpsFlowCount),
    *(nic_params.Rings, nic_params.Coalesce, nic_params.FlowControl),
    netem.Netem,
    *(rss.HashFields, rss.IndirectionTable, irq.IrqAffinity),
    *(cpufreq.Governor, cpufreq.Tunables, cpufreq.SetSpeed, cpufreq.EnergyPreference, cpufreq.FrequencyLimits),
    *(cpufreq.Boost, cpufreq.PolicyBoost, cpufreq.UncoreLimits, cpuidle.IdleStates, owners.ServiceRunning),
    *(ipsec.XfrmLink, ipsec.MssClamp, ipsec.OwnFile, ipsec.Daemon, ipsec.Connections),
    *(hugepages.HugePages, hugepages.HugetlbMount, pci.PciDriver, kernel_args.KernelArgs),
)
