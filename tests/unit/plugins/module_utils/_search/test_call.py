# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a module's parameters to a search: what is refused, and what the options mean."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t
import zipfile

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import call, goals, library, senders
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import RFC2544_SIZES, parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Settings
from ansible_collections.fastpath.bench.plugins.modules import throughput_search


def called(**options: t.Any) -> call.Call:
    answer = ArgumentSpecValidator(throughput_search.argument_spec()).validate({"generator": "simulated", **options})
    assert not answer.error_messages
    return call.Call.from_params(answer.validated_parameters)


def run(**options: t.Any) -> dict[str, t.Any]:
    with contextlib.ExitStack() as stack:
        return called(**options).run(stack)


def test_defaults_are_ndr_and_pdr() -> None:
    assert called().plan.goals == goals.DEFAULT_GOALS
    assert called(goals=[{"name": "NDR"}]).plan.goals == (goals.NDR,)
    for algorithm in ("rfc2544", "binary"):
        assert called(algorithm=algorithm).plan.goals == (goals.rfc2544_goal(),)
    assert called(algorithm="rfc2544", trial_s=5).plan.goals[0].final_trial_s == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"goals": [{"name": "x", "loss_ratio": 1.0}]}, "loss_ratio"),
        ({"goals": [{"name": "x", "final_trial_s": 0.5}]}, "initial_trial_s"),
        ({"goals": [{"name": "x"}, {"name": "x", "loss_ratio": 0.1}]}, "one name"),
        ({"goals": [{"name": "x"}, {"name": "y"}]}, "the same"),
        ({"goals": []}, "no goal"),
        ({"goals": [{"name": "x", "preceding_targets": 0}]}, "preceding_targets"),
        ({"algorithm": "rfc2544", "goals": [{"name": "x"}]}, "RFC 2544"),
        ({"min_load_pps": 10, "max_load_pps": 5}, "no range"),
        ({"validation_s": -1}, "negative"),
        ({"validation_s": float("inf")}, "validation_s"),
        ({"search_limit_s": float("nan")}, "search_limit_s"),
        ({"goals": [{"name": "x", "duration_sum_s": float("inf")}]}, "duration_sum_s"),
        ({"simulated": {"stall_every_s": 0}}, "simulated"),
        ({"simulated": {"rate_pps": "nan"}}, "simulated"),
        ({"generator": "flow", "server": "2001:db8::1", "port": 1, "frame": "82", "direction": "both"}, "source_port"),
        ({"generator": "flow", "server": "192.0.2.1", "port": 1, "flows": 0}, "flows"),
        (
            {"generator": "trex", "server": "192.0.2.1", "port": 1, "direction": "both", "source_port": 2},
            "from this host only",
        ),
        ({"generator": "iperf2"}, "both are needed"),
        ({"simulated": {"speed": 1}}, "simulated"),
        ({"simulated": {"rate_pps": "fast"}}, "simulated"),
        ({"generator": "iperf2", "server": "192.0.2.1", "port": 1, "frame": "60"}, "too small"),
        ({"generator": "iperf2", "server": "2001:db8::1", "port": 1, "frame": "64"}, "82 bytes or more"),
        ({"generator": "iperf2", "server": "192.0.2.1", "port": 0}, "port"),
        ({"generator": "iperf2", "server": "server", "port": 1}, "not an IP address"),
        ({"generator": "iperf2", "server": "192.0.2.1", "port": 1, "frame": "tiny"}, "no frame size"),
    ],
)
def test_what_cannot_be_is_refused_before_any_traffic(options: dict[str, t.Any], said: str) -> None:
    with pytest.raises(BenchError, match=said):
        called(**options)


def test_trials_are_kept_on_the_host(tmp_path: pathlib.Path) -> None:
    result = run(spool_dir=str(tmp_path / "new"), simulated={"rate_pps": 50000, "generator_pps": 100000})
    files = sorted((tmp_path / "new").iterdir())
    assert len(files) == len(result["trials"])
    assert files[0].name == "search-1.json"


def test_a_state_that_does_not_hold_ends_the_search() -> None:
    result = run(state_command=["false"])
    assert (result["status"], result["code"]) == ("failed", "state_assertion")
    assert run(state_command=["true"], validation_s=0, goals=[{"name": "NDR", "duration_sum_s": 1}])["status"] == "ok"


def test_frames_are_l2_with_fcs() -> None:
    assert [parse_frames(str(size)).parts[0].payload_bytes(4) for size in RFC2544_SIZES] == [
        18, 82, 210, 466, 978, 1234, 1472,
    ]  # fmt: skip
    assert parse_frames("1518").parts[0].payload_bytes(6) == 1452
    # 14,880,952 frames of 64 bytes fill 10 Gbit/s
    assert parse_frames("64").line_rate_pps(10e9) == pytest.approx(14_880_952.4, abs=0.1)
    mix = parse_frames("imix")
    assert [part.frame_bytes for part in mix.parts] == [64, 594, 1518]
    assert mix.mean_bytes == pytest.approx((7 * 64 + 4 * 594 + 1518) / 12)
    assert mix.l2_bps(12) == pytest.approx((7 * 64 + 4 * 594 + 1518) * 8)
    own = parse_frames("half", {"64": 1, "1518": "1"})
    assert [(part.frame_bytes, part.share) for part in own.parts] == [(64, 0.5), (1518, 0.5)]


def test_the_library_is_taken_from_a_wheel(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PACKAGE", "FastpathNoSuchLibrary")
    with pytest.raises(BenchError, match=r"role fastpath\.bench\.throughput_search") as absent:
        library.load(str(tmp_path))
    assert absent.value.code == "mlrsearch_absent"
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    with zipfile.ZipFile(tmp_path / "FastpathNoSuchLibrary-9-py3-none-any.whl", "w") as wheel:
        wheel.writestr("FastpathNoSuchLibrary/__init__.py", "GoalResult = 1\n")
    found, origin = library.load(str(tmp_path))
    assert found.GoalResult == 1
    assert origin.startswith(str(tmp_path))


def test_a_library_of_another_api_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PACKAGE", "json")
    with pytest.raises(BenchError, match="too old"):
        library.load(str(tmp_path))


@pytest.mark.parametrize(
    ("generator", "more", "said"),
    [
        ("flow", {"server": "::1", "frame": "82"}, "IPv4 only"),
        ("flow", {"flows": 40000, "parallel": 2}, "more than there are ports"),
        ("testpmd", {"server": "::1", "frame": "82"}, "IPv4 only"),
        ("testpmd", {"frame": "imix"}, "one size"),
        ("testpmd", {"flows": 2}, "one flow"),
        ("testpmd", {"parallel": 17}, "at most 16 queues"),
        ("trex", {"server": "::1", "frame": "82"}, "IPv4 only"),
        ("trex", {"flows": 2}, "one flow"),
        ("flow", {"frame": "65535", "mtu": 9000}, "does not fit lo"),
        ("pktgen", {}, "is no sender"),
    ],
)
def test_what_a_sender_cannot_do_is_told_before_it_sends(
    generator: str, more: dict[str, t.Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"server": "127.0.0.1", "port": 1, "frame": "64", **more}
    mtu = values.pop("mtu", 65535)
    monkeypatch.setattr(senders, "device_mtu", lambda _device: mtu)
    values["frames"] = parse_frames(values.pop("frame"))
    with pytest.raises(BenchError, match=said):
        senders.make_sender(generator, Settings(**values))
