# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection to a running VPP over its binary API.

The definitions of the API come from the VPP that runs, so no version of VPP
is baked in. Requests that do not depend on each other are sent together and
their answers collected, which is what makes hundreds of objects cheap. Every
wait is bounded, and everything that can go wrong has an error of its own.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import logging
import os
import socket
import stat
import struct
import sys
import time
import types
import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._vpp.cli import socket_denied
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.definitions import Definitions
from ansible_collections.fastpath.bench.plugins.module_utils._vpp.errors import (
    VppError,
    VppGone,
    VppHung,
    VppNotRunning,
    VppPapiMissing,
    VppRefused,
    message_missing,
)

DEFAULT_SOCKET: t.Final = "/run/vpp/api.sock"
SOCKET_ENV: t.Final = "VPP_API_SOCKET"
DEFAULT_TIMEOUT_S: t.Final = 30.0
#: What VPP answers where "any" or "none" is meant.
NO_INDEX: t.Final = 0xFFFFFFFF
#: Requests that are under way at the same time. VPP reads them as fast as it can; more only fills buffers.
_WINDOW = 256
_EAGAIN = -165

Reply = t.Any


class Call(t.NamedTuple):
    """One request: its name in VPP's API, its fields, and the refusals that are no failure here."""

    request: str
    fields: t.Mapping[str, t.Any] = types.MappingProxyType({})
    tolerated: tuple[int, ...] = ()
    #: What the request is about, for the message when VPP refuses it.
    where: str | None = None
    hint: str | None = None


class Session(t.Protocol):
    """What the rest of the collection needs from a VPP; the in-memory one of the tests has the same."""

    socket_path: str

    def batch(self, calls: t.Sequence[Call]) -> list[Reply]:
        """Send all, give the answers in the same order: a reply, or a list of records for a dump."""

    def call(self, request: str, **fields: t.Any) -> Reply:
        """One request."""

    def has(self, request: str) -> bool:
        """Whether this VPP knows the request."""

    def version(self) -> str:
        """VPP's version as it says it, such as 26.06-release."""

    def pid(self) -> int | None:
        """VPP's process id as seen from here, None when that cannot be known."""


class PapiSession:
    """A connection through the package vpp_papi."""

    def __init__(self, socket_path: str = DEFAULT_SOCKET, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.socket_path = socket_path
        self.timeout_s = timeout_s
        self._client: t.Any = None
        self._definitions: Definitions | None = None
        self._version: str | None = None

    # Opening and closing

    def open(self) -> None:
        papi = _import_papi()
        _check_socket(self.socket_path)
        began = time.monotonic()
        try:
            self._client = self._connected(papi)
        except (PermissionError, FileNotFoundError, ConnectionRefusedError) as err:
            raise _socket_error(self.socket_path, err) from err
        except (TimeoutError, BlockingIOError) as err:
            # BlockingIOError: the queue of those who wait to be let in is full
            raise self._hung("the connection was not accepted") from err
        except (OSError, TypeError, AttributeError, struct.error) as err:
            # PAPI meets a closed connection in the handshake with one of these
            if time.monotonic() - began >= self.timeout_s * 0.9:
                raise self._hung("the connection was not accepted") from err
            raise self._gone("VPP closed the connection while it was being opened") from err

    def _connected(self, papi: types.ModuleType) -> t.Any:
        client_class = _client_class(papi)
        options = {"server_address": self.socket_path, "read_timeout": self.timeout_s, "async_thread": False}
        # PAPI logs what we report ourselves
        options["logger"] = logging.getLogger("fastpath.bench.vpp")
        logging.getLogger("vpp_papi.transport").setLevel(logging.CRITICAL)
        try:
            client = client_class(bootstrapapi=True, **options)
        except TypeError:
            client = None  # a PAPI from before VPP could hand out its definitions
        if client is not None:
            client.deferred = self._take_definitions
            _connect(client)
            if self._definitions is not None:
                return client
            _abandon(client)
        files = _api_files(self.socket_path)
        client = papi.VPPApiClient(apifiles=files, **options)
        _connect(client)
        return client

    def _take_definitions(self, text: str) -> None:
        self._definitions = Definitions(text)

    def close(self, *, broken: bool = False) -> None:
        """End the connection; a broken one without asking VPP, which would cost another time limit."""
        client, self._client = self._client, None
        if client is None:
            return
        if broken:
            _abandon(client)
            return
        # VPP may have gone by now; there is nothing left to lose
        with contextlib.suppress(OSError):
            client.disconnect()

    def __enter__(self) -> PapiSession:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: t.Any) -> None:
        self.close(broken=isinstance(err, (VppGone, VppHung)))

    # Asking

    def has(self, request: str) -> bool:
        return self._message(request) is not None

    def call(self, request: str, **fields: t.Any) -> Reply:
        return self.batch([Call(request, fields)])[0]

    def batch(self, calls: t.Sequence[Call]) -> list[Reply]:
        """Send all, give the answers in the same order.

        The first refusal that is not tolerated is raised, after all answers
        of its window have come: what was sent has been done by then.
        """
        for call in calls:
            if not self.has(call.request):
                raise message_missing(call.request, self._version)
        answers: list[Reply] = []
        for start in range(0, len(calls), _WINDOW):
            answers.extend(self._window(calls[start : start + _WINDOW]))
        return answers

    def version(self) -> str:
        if self._version is None:
            self._version = str(self.call("show_version").version)
        return self._version

    def pid(self) -> int | None:
        """From the socket, so that it holds also when VPP lives in another PID namespace."""
        connection = self._client.transport.socket if self._client is not None else None
        return None if connection is None else _peer(connection)

    def enum(self, type_name: str, value: str) -> t.Any:
        """A value of an enumeration by its name, as this VPP numbers it."""
        return self._client.get_type(f"vl_api_{type_name}_t").enum[value]

    # How it is done

    def _message(self, request: str) -> tuple[int, t.Any] | None:
        """Number and definition of a request; the definition is built when it is first asked for."""
        client = self._client
        if client is None:
            raise VppError("the session is not open", where=self.socket_path, code="vpp_session_closed")
        if request not in client.services and self._definitions is not None:
            text = self._definitions.excerpt(request)
            if text is None:
                return None
            client.add_definitions(text)
        definition = client.messages.get(request)
        if definition is None or request not in client.services:
            return None
        number = client.transport.get_msg_index(f"{request}_{definition.crc[2:]}")
        return (number, definition) if number > 0 else None

    def _window(self, calls: t.Sequence[Call]) -> list[Reply]:
        answers: list[Reply] = [None] * len(calls)
        #: context of each request that still waits -> its position
        waiting: dict[int, int] = {}
        #: context of each dump -> the name of its records and its position
        dumps: dict[int, tuple[str, int]] = {}
        began = time.monotonic()
        try:
            ping = self._send(calls, answers, waiting, dumps)
            while waiting or ping is not None:
                began = time.monotonic()
                reply = self._client.read_blocking(timeout=self.timeout_s)
                if reply is None:
                    raise self._no_answer(began, calls)
                context = getattr(reply, "context", 0)
                if context == ping:
                    ping = None
                elif context in dumps and type(reply).__name__ == dumps[context][0]:
                    answers[dumps[context][1]].append(reply)
                elif context in waiting:
                    position = waiting.pop(context)
                    if context in dumps:
                        answers[position].extend(self._rest(calls[position], reply))
                    else:
                        answers[position] = reply
                # else: an event that nobody here asked for
        except OSError as err:
            raise self._no_answer(began, calls) from err
        for call, answer in zip(calls, answers):
            retval = getattr(answer, "retval", 0)
            if retval < 0 and retval not in call.tolerated:
                raise VppRefused(call.request, retval, where=call.where, hint=call.hint)
        return answers

    def _send(
        self,
        calls: t.Sequence[Call],
        answers: list[Reply],
        waiting: dict[int, int],
        dumps: dict[int, tuple[str, int]],
    ) -> int | None:
        """Send all; gives the context of the ping whose answer ends the dumps that have no end mark of their own."""
        client, endless = self._client, False
        for position, call in enumerate(calls):
            number, definition = t.cast("tuple[int, t.Any]", self._message(call.request))
            client.validate_args(definition, {**call.fields, "context": 0})
            try:
                context = client._call_vpp_async(number, definition, **call.fields)
            except (struct.error, ValueError) as err:
                raise _not_packed(call, err) from err
            service = client.services[call.request]
            if "stream" not in service:
                waiting[context] = position
                continue
            answers[position] = []
            dumps[context] = (service.get("stream_msg", service["reply"]), position)
            if "stream_msg" in service:
                waiting[context] = position
            else:
                endless = True
        return self._ping() if endless else None

    def _ping(self) -> int:
        number, definition = t.cast("tuple[int, t.Any]", self._message("control_ping"))
        return int(self._client._call_vpp_async(number, definition))

    def _rest(self, call: Call, reply: Reply) -> list[Reply]:
        """The following pages of a long list that VPP gives page by page."""
        if reply.retval == _EAGAIN:
            return list(self._window([call._replace(fields={**call.fields, "cursor": reply.cursor})])[0])
        if reply.retval < 0 and reply.retval not in call.tolerated:
            raise VppRefused(call.request, reply.retval, where=call.where, hint=call.hint)
        return []

    def _no_answer(self, began: float, calls: t.Sequence[Call]) -> VppError:
        names = sorted({call.request for call in calls})
        what = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} other requests"
        if time.monotonic() - began >= self.timeout_s * 0.9:
            return self._hung(f"no answer to {what}")
        return self._gone(f"the connection broke during {what}")

    def _hung(self, what: str) -> VppHung:
        return VppHung(
            f"VPP does not answer within {self.timeout_s:g} s: {what}",
            where=self.socket_path,
            remedy="See whether VPP is stopped, overloaded or held in a debugger; a longer time limit is api_timeout_s",
            code="vpp_hung",
        )

    def _gone(self, what: str) -> VppGone:
        return VppGone(
            f"VPP ended or was restarted in the middle: {what}",
            where=self.socket_path,
            remedy="What VPP held before is lost with it; see its log, then run the task again",
            code="vpp_gone",
        )


def _not_packed(call: Call, err: Exception) -> VppError:
    """A value that the field of a request cannot hold. Nothing of it was sent."""
    return VppError(
        f"a value for {call.request} is out of range: {err}",
        where=call.where,
        remedy="Give values that fit what the options describe",
        code="bad_option",
    )


def _import_papi() -> types.ModuleType:
    try:
        return importlib.import_module("vpp_papi")
    except ImportError as err:
        raise VppPapiMissing(
            f"the Python package vpp_papi cannot be imported by {sys.executable}: {err}",
            remedy="Install the package python3-vpp-api of FD.io's repository (the role fastpath.bench.vpp does), or "
            "vpp_papi with pip for this Python",
            code="vpp_papi_missing",
        ) from err


def _client_class(papi: types.ModuleType) -> t.Any:
    """PAPI's client, with definitions built when they are used rather than all at once."""

    class Client(papi.VPPApiClient):  # type: ignore[misc,name-defined]
        deferred: t.Callable[[str], None]

        def get_api_definitions(self) -> None:
            self._register_functions(do_async=False)
            if not hasattr(self.api, "get_api_json"):
                return  # a VPP that cannot; the caller takes the files instead
            reply = self.api.get_api_json()
            if reply.retval == 0:
                self.deferred(reply.json)

        def add_definitions(self, text: str) -> None:
            messages, services = papi.vpp_papi.VPPApiJSONFiles.process_json_str(text)
            self.messages.update(messages)
            self.services.update(services)
            for name, definition in messages.items():
                number = self.transport.get_msg_index(f"{name}_{definition.crc[2:]}")
                if number > 0:
                    self.id_msgdef[number] = definition
                    self.id_names[number] = name

    return Client


def _connect(client: t.Any) -> None:
    try:
        client.connect("fastpath.bench")
    except BaseException:
        _abandon(client)
        raise


def _abandon(client: t.Any) -> None:
    """Drop a connection without a word to VPP, and so that the end of the process does not wait for it either."""
    transport = client.transport
    transport.connected = False
    for queue in (transport.q, transport.sque):
        queue.cancel_join_thread()
    if transport.socket is not None:
        # wakes PAPI's reading thread; it may be closed already
        with contextlib.suppress(OSError):
            transport.socket.shutdown(socket.SHUT_RDWR)
        transport.socket.close()


def _api_files(socket_path: str) -> list[str]:
    """The definitions that lie beside the running binary, for a VPP or PAPI that cannot hand them over."""
    folders = [os.environ.get("VPP_API_DIR", ""), "/usr/share/vpp/api"]
    pid = peer_pid(socket_path)
    if pid:
        with contextlib.suppress(OSError):
            binary = os.readlink(f"/proc/{pid}/exe")
            folders.insert(1, os.path.join(os.path.dirname(os.path.dirname(binary)), "share/vpp/api"))
    for folder in folders:
        files = sorted(glob.glob(os.path.join(folder, "**", "*.api.json"), recursive=True)) if folder else []
        if files:
            return files
    raise VppError(
        "VPP does not hand out the definitions of its API, and there are no files with them",
        where=", ".join(folder for folder in folders if folder),
        remedy="Install vpp_papi 2.1 or newer, or set VPP_API_DIR to the folder with the .api.json files of this VPP",
        code="vpp_no_definitions",
    )


def peer_pid(socket_path: str) -> int | None:
    """The process that listens on a socket."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            probe.connect(socket_path)
            return _peer(probe)
    except OSError:
        return None


def _peer(connection: socket.socket) -> int | None:
    """The process at the other end; 0, for one in a PID namespace that is not seen from here, becomes None."""
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return None
    return int(struct.unpack("3i", peer)[0]) or None


def _check_socket(path: str) -> None:
    """What can be told before a connection is tried."""
    try:
        mode = os.stat(path).st_mode
    except OSError as err:
        raise _socket_error(path, err) from err
    if not stat.S_ISSOCK(mode):
        raise VppNotRunning(
            "this is not a socket",
            where=path,
            remedy="Give the socket of the section socksvr of VPP's startup.conf",
            code="vpp_no_socket",
        )


def _socket_error(path: str, err: OSError) -> VppError:
    if isinstance(err, PermissionError):
        return socket_denied(path)
    if isinstance(err, ConnectionRefusedError):
        return VppNotRunning(
            "the socket is left over, no VPP listens on it",
            where=path,
            remedy="VPP ended without removing it. Start VPP; its log says why it ended",
            code="vpp_not_running",
        )
    if isinstance(err, (FileNotFoundError, NotADirectoryError)):
        return VppNotRunning(
            "there is no API socket of VPP",
            where=path,
            remedy="Start VPP, and see that its startup.conf has 'socksvr { default }' or this path in it; another "
            f"path is given by api_socket or {SOCKET_ENV}",
            code="vpp_no_socket",
        )
    return VppError(f"the API socket cannot be used: {err.strerror or err}", where=path, code="vpp_socket")
