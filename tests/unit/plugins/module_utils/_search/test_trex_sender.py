# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TRex as the sender: what is refused, what its server and client are told, and that both end with the caller."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import tempfile
import time
import types
import typing as t

import pytest
import yaml

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError
from ansible_collections.fastpath.bench.plugins.module_utils._search import trex_driver, trex_sender
from ansible_collections.fastpath.bench.plugins.module_utils._search.frames import parse_frames
from ansible_collections.fastpath.bench.plugins.module_utils._search.sender import Settings
from ansible_collections.fastpath.bench.plugins.module_utils._traffic.flow_run import WayOut

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "trex"
#: What the client of TRex 3.08 gave after a burst of 20,000 frames, on an interface through af_packet.
STATS = json.loads((FIXTURES / "stats.json").read_text(encoding="utf-8"))
WAY = WayOut("eth1", "192.0.2.1", ("02:00:00:00:00:01", "02:00:00:00:00:02"))


def settings(frame: str = "64", **more: t.Any) -> Settings:
    return Settings("192.0.2.10", 5001, parse_frames(frame), **more)


def trex(folder: pathlib.Path) -> str:
    (folder / trex_driver.CLIENT).mkdir(parents=True)
    (folder / trex_driver.SERVER).touch()
    return str(folder)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trex_sender.os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"flows": 2}, "one flow"),
        ({"frame": "62"}, "no frame of 62 bytes"),
        ({"frame": "2000"}, "Use 64 to 1518"),
        ({"trex_dir": "/nonexistent"}, "no TRex is there"),
    ],
)
def test_what_is_refused(more: dict[str, t.Any], said: str) -> None:
    with pytest.raises(BenchError) as caught:
        trex_sender.TrexSender(settings(**more))
    assert said in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.usefixtures("as_root")
def test_half_a_trex_is_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / trex_driver.SERVER).touch()
    with pytest.raises(BenchError, match="trex_control_plane") as caught:
        trex_sender.TrexSender(settings(trex_dir=str(tmp_path)))
    assert caught.value.code == "tool_absent"


def test_only_root(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(trex_sender.os, "geteuid", lambda: 1000)
    with pytest.raises(BenchError, match="only root"):
        trex_sender.TrexSender(settings(trex_dir=trex(tmp_path)))


@pytest.mark.usefixtures("as_root")
def test_no_way_out_is_told_before_anything_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    def way_out(_server: str) -> WayOut:
        raise BenchError("no interface leads there", code="no_route")

    monkeypatch.setattr(trex_sender, "way_out", way_out)
    with pytest.raises(BenchError, match="no interface"):
        trex_sender.TrexSender(settings(trex_dir=trex(tmp_path)))


def test_its_file() -> None:
    told = yaml.safe_load(trex_driver.configuration(trex_driver.Place("/opt/trex", WAY, 1), (4500, 4501), "mine"))[0]
    assert told["interfaces"] == ["eth1", "dummy"]
    assert (told["low_end"], told["low_end_core"], told["prefix"]) == (True, 1, "mine")
    assert (told["zmq_pub_port"], told["zmq_rpc_port"]) == (4500, 4501)
    assert told["port_info"][0] == {"dest_mac": WAY.macs[0], "src_mac": WAY.macs[1]}


def test_its_server_ends_with_who_started_it() -> None:
    words = trex_driver.server_command(trex_driver.Place("/opt/trex", WAY), "/tmp/x.yaml", "/tmp/log")
    assert words[1:3] == ["--pdeathsig", "KILL"]
    assert words[words.index("-i") :][:5] == ["-i", "--cfg", "/tmp/x.yaml", "--iom", "0"]


def test_why_it_ended() -> None:
    said = (FIXTURES / "absent.txt").read_text(encoding="utf-8")
    assert "No such device" in trex_driver.complaint(said)
    assert trex_driver.complaint("\n") == "it said nothing"


class Client:
    """A client that counts as TRex does; ``rates`` are the packets that it has sent at each look."""

    def __init__(self, looks: list[int]) -> None:
        self.looks = looks
        self.called: list[str] = []
        self.streams: list[types.SimpleNamespace] = []

    def __call__(self, **_where: t.Any) -> Client:
        return self

    def get_stats(self, ports: list[int]) -> dict[t.Any, t.Any]:
        sent = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return {**STATS, ports[0]: {**STATS["0"], "opackets": sent}}

    def get_server_version(self) -> dict[str, str]:
        return {"mode": "STL", "version": "v3.08"}

    def add_streams(self, streams: list[types.SimpleNamespace], ports: list[int]) -> None:
        assert ports == [0]
        self.streams = streams

    def __getattr__(self, name: str) -> t.Callable[..., None]:
        return lambda *_words, **_more: self.called.append(name)


def commander(client: Client) -> trex_driver.Commander:
    def made(**fields: t.Any) -> types.SimpleNamespace:
        return types.SimpleNamespace(**fields)

    api = made(STLClient=client, STLStream=made, STLPktBuilder=made, STLTXCont=made, STLTXSingleBurst=made,
               STLStreamDstMAC_PKT=1)  # fmt: skip
    return trex_driver.Commander(api, (4500, 4501))


def order(*packets: int | None, duration_s: float = 0.001) -> dict[str, t.Any]:
    return {"streams": [{"frame": "00" * 60, "pps": 1e4, "packets": one} for one in packets], "duration_s": duration_s}


def test_all_is_sent_and_counted() -> None:
    client = Client([500, 500 + STATS["0"]["opackets"]])
    told: list[str] = []
    said = commander(client).trial(order(15_000, 5_000, 0), lambda: told.append("began"))
    assert STATS["0"]["opackets"] == 20_000
    assert said["packets"] == 20_000
    # a stream of no packets is none for TRex
    assert [one.mode.total_pkts for one in client.streams] == [15_000, 5_000]
    assert told == ["began"]
    assert client.called[-2:] == ["start", "stop"]


def test_what_comes_after_the_time_is_not_sent() -> None:
    """It is stopped, and what was sent until it stood still is what counts."""
    client = Client([0, 10, 20, 30, 30])
    said = commander(client).trial(order(1_000_000), lambda: None, lambda _seconds: time.sleep(0.003))
    assert (said["packets"], client.called[-1]) == (30, "stop")
    assert said["seconds"] < 1


def test_what_the_client_raises_is_an_error_of_the_tool() -> None:
    client = Client([0])
    made = commander(client)
    client.add_streams = None  # type: ignore[method-assign,assignment]
    with pytest.raises(BenchError, match="TRex does not send") as caught:
        made.trial(order(1), lambda: None)
    assert caught.value.code == "tool_error"


class Answering:
    """In place of the process: what it is told, and what it says."""

    version = "v3.08"

    def __init__(self, _place: trex_driver.Place) -> None:
        self.told: list[dict[str, t.Any]] = []
        self.says: list[dict[str, t.Any]] = []
        self.closed = False

    def order(self, what: dict[str, t.Any]) -> None:
        self.told.append(what)

    def answer(self, _within_s: float) -> dict[str, t.Any]:
        return self.says.pop(0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, as_root: None) -> trex_sender.TrexSender:
    monkeypatch.setattr(trex_sender, "way_out", lambda _server: WAY)
    monkeypatch.setattr(trex_driver, "Driver", Answering)
    monkeypatch.setattr(trex_sender.promiscuous, "claim", lambda _device: socket.socket(socket.AF_UNIX))
    return trex_sender.TrexSender(settings("imix", trex_dir=trex(tmp_path)))


def test_a_mix_by_its_recipe(sender: trex_sender.TrexSender) -> None:
    sender.prepare()
    driver = t.cast(Answering, sender._driver)
    driver.says = [{"began": True}, {"packets": 24_000, "seconds": 2.001}]
    with sender.sending(12_000, 2) as finish:
        sent = finish()
    (told,) = driver.told
    assert [one["packets"] for one in told["streams"]] == [14_000, 8_000, 2_000]
    assert [round(one["pps"]) for one in told["streams"]] == [7_000, 4_000, 1_000]
    # FCS is not in a frame of theirs
    assert [len(one["frame"]) // 2 for one in told["streams"]] == [60, 590, 1514]
    assert len({one["frame"][68:72] for one in told["streams"]}) == 3
    assert [(one.frame_bytes, one.packets) for one in sent] == [(64, 14_000), (594, 8_000), (1518, 2_000)]
    assert not driver.closed
    # one that sends less keeps its sum
    driver.says = [{"began": True}, {"packets": 23_999, "seconds": 2.001}]
    with sender.sending(12_000, 2) as finish:
        assert sum(one.packets for one in finish()) == 23_999
    sender.close()
    assert driver.closed


def test_a_trial_that_is_broken_off_ends_the_server(sender: trex_sender.TrexSender) -> None:
    sender.prepare()
    driver = t.cast(Answering, sender._driver)
    driver.says = [{"began": True}]
    with pytest.raises(KeyboardInterrupt), sender.sending(None, 1):
        raise KeyboardInterrupt
    assert driver.closed
    assert sender.describe()["version"] is None


# --------------------------------------------------------------------------- the process


class Standing:
    """In place of the server: it leaves a mark when it has ended."""

    mark = pathlib.Path("/nonexistent")

    def __init__(self, _place: trex_driver.Place) -> None:
        self.ports = (1, 2)

    def __enter__(self) -> Standing:
        return self

    def __exit__(self, *_why: object) -> None:
        self.mark.write_text("ended", encoding="utf-8")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> t.Iterator[trex_driver.Driver]:
    commanding = commander(Client([0, 7]))
    monkeypatch.setattr(Standing, "mark", tmp_path / "mark")
    monkeypatch.setattr(trex_driver, "Server", Standing)
    monkeypatch.setattr(trex_driver, "load_client", lambda _folder: None)
    monkeypatch.setattr(trex_driver, "Commander", lambda _api, _ports: commanding)
    made = trex_driver.Driver(trex_driver.Place("/opt/trex", WAY))
    yield made
    made.close()


def test_an_order_and_its_answers(driver: trex_driver.Driver) -> None:
    assert driver.version == "v3.08"
    driver.order(order(7))
    assert driver.answer(10) == {"began": True}
    assert driver.answer(10)["packets"] == 7
    driver.close()
    assert Standing.mark.read_text(encoding="utf-8") == "ended"


def test_the_server_ends_when_the_caller_is_gone_in_a_trial(driver: trex_driver.Driver) -> None:
    driver.order(order(7, duration_s=60))
    assert driver.answer(10) == {"began": True}
    began = time.monotonic()
    # as the kernel does it when the caller is killed
    driver._socket.close()
    while not Standing.mark.exists():
        assert time.monotonic() - began < 30
        time.sleep(0.005)


class Left(Standing):
    """One that is at work, with what it needs."""

    def __enter__(self) -> Left:
        pathlib.Path(tempfile.mkdtemp(prefix=f"fastpath-trex-{os.getpid()}-"), "log").touch()
        pathlib.Path(trex_driver._DPDK_RUN, f"fastpath-{os.getpid()}").mkdir()
        return self


def test_what_a_killed_process_left_is_put_back_by_its_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    commanding = commander(Client([0, 7]))
    flags: list[str] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(trex_driver, "_DPDK_RUN", str(tmp_path))
    monkeypatch.setattr(trex_driver, "Server", Left)
    monkeypatch.setattr(trex_driver, "load_client", lambda _folder: None)
    monkeypatch.setattr(trex_driver, "Commander", lambda _api, _ports: commanding)
    monkeypatch.setattr(trex_driver.promiscuous, "keep", lambda device: lambda: flags.append(device))
    made = trex_driver.Driver(trex_driver.Place("/opt/trex", WAY))
    assert len(list(tmp_path.iterdir())) == 2
    os.kill(made._pid, signal.SIGKILL)
    with pytest.raises(BenchError, match="ended without a word"):
        made.answer(10)
    made.close()
    assert list(tmp_path.iterdir()) == []
    assert flags == ["eth1"]
    made.close()


def test_why_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_folder: str) -> None:
        raise BenchError("Python 2.7 cannot load the client", code="trex_client")

    monkeypatch.setattr(trex_driver, "load_client", absent)
    with pytest.raises(BenchError, match=r"Python 2\.7") as caught:
        trex_driver.Driver(trex_driver.Place("/opt/trex", WAY))
    assert caught.value.code == "trex_client"
