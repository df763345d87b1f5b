# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own benchmarks, on a lab of their own. Writes results/bench.json and prints what the goals are.

Run it on a machine that does nothing else: figures of a loaded machine say nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit")]

importlib.import_module("conftest")  # makes the collection importable

from ansible_collections.fastpath.bench.tests.support.vpp_process import find_vpp, why_not  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
LAB = "bench"
PARTS = ["demo", "pairs", "vpp_recipe", "nat_ratio", "vpp_scale", "scale"]
IN_LAB = {"demo", "pairs", "vpp_recipe", "nat_ratio"}


def play(playbook: str, **variables: object) -> float:
    started = time.monotonic()
    subprocess.run(
        [str(BIN / "ansible-playbook"), str(ROOT / playbook), "-e", json.dumps({"lab_name": LAB, **variables})],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - started


def demo(folder: pathlib.Path) -> dict[str, object]:
    """The whole of site.yml with the demo's matrix, from the outside."""
    wall = play("site.yml", bench_results_dir=str(folder), bench_run_id="bench")
    run = json.loads((folder / "bench" / "run.json").read_text())
    inside = run["harness"]
    trials = [json.loads(p.read_text()) for p in (folder / "bench" / "trials").glob("*.json")]
    traffic = sum(t["duration_s"] or 0 for t in trials if t["status"] == "ok")
    return {
        "wall_s": round(wall, 2),
        "traffic_s": traffic,
        "trials": len(trials),
        "trials_ok": sum(t["status"] == "ok" for t in trials),
        "harness_s_per_trial": round((wall - traffic) / len(trials), 3),
        "harness_s_per_trial_in_report": inside["harness_s_per_trial"],
        "goal": "at most 2.0",
    }


def pairs(folder: pathlib.Path, count: int) -> dict[str, object]:
    """The collection's figure against iperf typed by hand, in turns on the same path."""
    file = folder / "pairs.json"
    play("tests/bench/pairs.yml", pairs_file=str(file), pairs=count)
    figures = json.loads(file.read_text())
    ratio = statistics.median(c / h for c, h in zip(figures["collection"], figures["hand"]))
    return {
        **figures,
        "median_ratio": round(ratio, 4),
        "ratio_of_medians": round(statistics.median(figures["collection"]) / statistics.median(figures["hand"]), 4),
        "goal": "0.97 to 1.03",
    }


def vpp_recipe(folder: pathlib.Path, count: int) -> dict[str, object]:
    """Forwarding by the role's VPP against VPP as typed by hand, in turns on the same DUT."""
    # the role brings vpp_papi to the host itself
    reason = why_not(papi=False)
    if reason is not None:
        return {"skipped": reason}
    file = folder / "vpp_recipe.json"
    play("tests/bench/vpp_recipe.yml", pairs_file=str(file), pairs=count, vpp_bin=find_vpp())
    figures = json.loads(file.read_text())
    ratio = statistics.median(r / h for r, h in zip(figures["role"], figures["hand"]))
    return {
        **figures,
        "median_ratio": round(ratio, 4),
        "ratio_of_medians": round(statistics.median(figures["role"]) / statistics.median(figures["hand"]), 4),
        "goal": "at least 0.97",
        "load": round(os.getloadavg()[0], 2),
    }


def nat_ratio(folder: pathlib.Path, count: int) -> dict[str, object]:
    """How many times dearer a packet is that opens a session of VPP's NAT44, by clocks, in runs of nat_paths."""
    reason = why_not(papi=False)
    if reason is not None:
        return {"skipped": reason}
    ratios, rows = [], []
    for number in range(count):
        results = folder / f"nat{number}"
        # so fast that VPP takes many packets at a call: with few, waking up is what costs
        sizes = {"flows": 60_000, "rate_pps": 40_000, "duration_s": 3, "rounds": 7, "datapaths": ["vpp_nat44"]}
        options = {f"bench_nat_paths_{name}": value for name, value in sizes.items()}
        play("playbooks/nat_paths.yml", bench_results_dir=str(results), **options)
        (file,) = results.glob("nat_paths-*/results.json")
        (row,) = json.loads(file.read_text())["datapaths"]
        rows.append({path: row[path]["clocks_nat"] for path in ("new", "established")})
        ratios.append(row["clocks_ratio_nat"])
        if row["faults"]:
            return {"ratios": ratios, "faults": row["faults"]}
    middle = statistics.median(ratios)
    return {
        "ratios": [round(ratio, 2) for ratio in ratios],
        "clocks": rows,
        "median": round(middle, 2),
        "spread": round((max(ratios) - min(ratios)) / middle, 3),
        "goal": "a median of at least 5, each within 10 % of it",
        "furthest": round(max(abs(ratio / middle - 1) for ratio in ratios), 3),
        "load": round(os.getloadavg()[0], 2),
    }


def vpp_scale() -> object:
    """256 interfaces by the modules, by a bare PAPI script, by vppcfg and by a loop of vppctl."""
    program = str(ROOT / "tests/bench/vpp_scale.py")
    # it ends with 1 when a goal is missed, and says which in what it prints
    done = subprocess.run([sys.executable, program], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise RuntimeError(f"{program} ended with {done.returncode}")
    return json.loads(done.stdout)


def scale() -> object:
    program = str(ROOT / "tests/bench/report_scale.py")
    done = subprocess.run([sys.executable, program], cwd=ROOT, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results" / "bench.json")
    options = parser.parse_args()
    wanted = [options.only] if options.only else PARTS
    result: dict[str, object] = {"load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if IN_LAB & set(wanted):
            play("playbooks/lab_up.yml")
        try:
            if "demo" in wanted:
                result["demo"] = demo(folder)
            if "pairs" in wanted:
                result["pairs"] = pairs(folder, options.pairs)
            if "vpp_recipe" in wanted:
                result["vpp_recipe"] = vpp_recipe(folder, options.pairs)
            if "nat_ratio" in wanted:
                result["nat_ratio"] = nat_ratio(folder, options.pairs)
        finally:
            if IN_LAB & set(wanted):
                play("playbooks/lab_down.yml")
        if "scale" in wanted:
            result["report_scale"] = scale()
        if "vpp_scale" in wanted:
            result["vpp_scale"] = vpp_scale()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
