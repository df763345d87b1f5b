# Copyright (c) 2026 fastpath.bench contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong between the collection and a running VPP, each as an error of its own kind.

VPP answers a refused request with a negative number. The numbers and their
names are part of VPP's API (``src/vnet/error.h`` of VPP 26.06); what they mean
for a user is said here in words, and what to do about it where that is known.
"""

from __future__ import annotations

import typing as t

from ansible_collections.fastpath.bench.plugins.module_utils._common.errors import BenchError


class VppError(BenchError):
    """Anything that went wrong with VPP."""


class VppNotRunning(VppError):
    """There is nobody behind the socket."""


class VppNoPermission(VppError):
    """The socket is there and this user may not use it."""


class VppHung(VppError):
    """VPP holds the connection and does not answer within the time limit."""


class VppGone(VppError):
    """VPP ended, or was restarted, while it was being talked to."""


class VppPapiMissing(VppError):
    """The Python package that speaks VPP's API is not installed here."""


class VppMessageMissing(VppError):
    """This VPP does not know a request, mostly as the plugin is not loaded."""


class VppRefused(VppError):
    """VPP answered a request with an error."""

    def __init__(self, request: str, retval: int, *, where: str | None = None, hint: str | None = None) -> None:
        self.request = request
        self.retval = retval
        self.retval_name = name_of(retval)
        super().__init__(
            f"VPP refused {request}: {self.retval_name} ({retval}), {meaning_of(retval)}",
            where=where,
            remedy=hint or REMEDIES.get(self.retval_name),
            code="vpp_refused",
        )

    def as_result(self) -> dict[str, t.Any]:
        return {**super().as_result(), "request": self.request, "retval": self.retval, "retval_name": self.retval_name}


#: Number to name, as VPP has them.
NAMES: t.Final[dict[int, str]] = {
    -1: "UNSPECIFIED",
    -2: "INVALID_SW_IF_INDEX",
    -3: "NO_SUCH_FIB",
    -4: "NO_SUCH_INNER_FIB",
    -5: "NO_SUCH_LABEL",
    -6: "NO_SUCH_ENTRY",
    -7: "INVALID_VALUE",
    -8: "INVALID_VALUE_2",
    -9: "UNIMPLEMENTED",
    -10: "INVALID_SW_IF_INDEX_2",
    -11: "SYSCALL_ERROR_1",
    -12: "SYSCALL_ERROR_2",
    -13: "SYSCALL_ERROR_3",
    -14: "SYSCALL_ERROR_4",
    -15: "SYSCALL_ERROR_5",
    -16: "SYSCALL_ERROR_6",
    -17: "SYSCALL_ERROR_7",
    -18: "SYSCALL_ERROR_8",
    -19: "SYSCALL_ERROR_9",
    -20: "SYSCALL_ERROR_10",
    -30: "FEATURE_DISABLED",
    -31: "INVALID_REGISTRATION",
    -50: "NEXT_HOP_NOT_IN_FIB",
    -51: "UNKNOWN_DESTINATION",
    -52: "NO_PATHS_IN_ROUTE",
    -53: "NEXT_HOP_NOT_FOUND_MP",
    -54: "NO_MATCHING_INTERFACE",
    -55: "INVALID_VLAN",
    -56: "VLAN_ALREADY_EXISTS",
    -57: "INVALID_SRC_ADDRESS",
    -58: "INVALID_DST_ADDRESS",
    -59: "ADDRESS_LENGTH_MISMATCH",
    -60: "ADDRESS_NOT_FOUND_FOR_INTERFACE",
    -61: "ADDRESS_NOT_DELETABLE",
    -62: "IP6_NOT_ENABLED",
    -63: "NO_SUCH_NODE",
    -64: "NO_SUCH_NODE2",
    -65: "NO_SUCH_TABLE",
    -66: "NO_SUCH_TABLE2",
    -67: "NO_SUCH_TABLE3",
    -68: "SUBIF_ALREADY_EXISTS",
    -69: "SUBIF_CREATE_FAILED",
    -70: "INVALID_MEMORY_SIZE",
    -71: "INVALID_INTERFACE",
    -72: "INVALID_VLAN_TAG_COUNT",
    -73: "INVALID_ARGUMENT",
    -74: "UNEXPECTED_INTF_STATE",
    -75: "TUNNEL_EXIST",
    -76: "INVALID_DECAP_NEXT",
    -77: "RESPONSE_NOT_READY",
    -78: "NOT_CONNECTED",
    -79: "IF_ALREADY_EXISTS",
    -80: "BOND_SLAVE_NOT_ALLOWED",
    -81: "VALUE_EXIST",
    -82: "SAME_SRC_DST",
    -83: "IP6_MULTICAST_ADDRESS_NOT_PRESENT",
    -84: "SR_POLICY_NAME_NOT_PRESENT",
    -85: "NOT_RUNNING_AS_ROOT",
    -86: "ALREADY_CONNECTED",
    -87: "UNSUPPORTED_JNI_VERSION",
    -88: "IP_PREFIX_INVALID",
    -89: "INVALID_WORKER",
    -90: "LISP_DISABLED",
    -91: "CLASSIFY_TABLE_NOT_FOUND",
    -92: "INVALID_EID_TYPE",
    -93: "CANNOT_CREATE_PCAP_FILE",
    -94: "INCORRECT_ADJACENCY_TYPE",
    -95: "EXCEEDED_NUMBER_OF_RANGES_CAPACITY",
    -96: "EXCEEDED_NUMBER_OF_PORTS_CAPACITY",
    -97: "INVALID_ADDRESS_FAMILY",
    -98: "INVALID_SUB_SW_IF_INDEX",
    -99: "TABLE_TOO_BIG",
    -100: "CANNOT_ENABLE_DISABLE_FEATURE",
    -101: "BFD_EEXIST",
    -102: "BFD_ENOENT",
    -103: "BFD_EINUSE",
    -104: "BFD_NOTSUPP",
    -105: "ADDRESS_IN_USE",
    -106: "ADDRESS_NOT_IN_USE",
    -107: "QUEUE_FULL",
    -108: "APP_UNSUPPORTED_CFG",
    -109: "URI_FIFO_CREATE_FAILED",
    -110: "LISP_RLOC_LOCAL",
    -111: "BFD_EAGAIN",
    -112: "INVALID_GPE_MODE",
    -113: "LISP_GPE_ENTRIES_PRESENT",
    -114: "ADDRESS_FOUND_FOR_INTERFACE",
    -115: "SESSION_CONNECT",
    -116: "ENTRY_ALREADY_EXISTS",
    -117: "SVM_SEGMENT_CREATE_FAIL",
    -118: "APPLICATION_NOT_ATTACHED",
    -119: "BD_ALREADY_EXISTS",
    -120: "BD_IN_USE",
    -121: "BD_NOT_MODIFIABLE",
    -122: "BD_ID_EXCEED_MAX",
    -123: "SUBIF_DOESNT_EXIST",
    -124: "L2_MACS_EVENT_CLINET_PRESENT",
    -125: "INVALID_QUEUE",
    -126: "UNSUPPORTED",
    -127: "DUPLICATE_IF_ADDRESS",
    -128: "APP_INVALID_NS",
    -129: "APP_WRONG_NS_SECRET",
    -130: "APP_CONNECT_SCOPE",
    -131: "APP_ALREADY_ATTACHED",
    -132: "SESSION_REDIRECT",
    -133: "ILLEGAL_NAME",
    -134: "NO_NAME_SERVERS",
    -135: "NAME_SERVER_NOT_FOUND",
    -136: "NAME_RESOLUTION_NOT_ENABLED",
    -137: "NAME_SERVER_FORMAT_ERROR",
    -138: "NAME_SERVER_NO_SUCH_NAME",
    -139: "NAME_SERVER_NO_ADDRESSES",
    -140: "NAME_SERVER_NEXT_SERVER",
    -141: "APP_CONNECT_FILTERED",
    -142: "ACL_IN_USE_INBOUND",
    -143: "ACL_IN_USE_OUTBOUND",
    -144: "INIT_FAILED",
    -145: "NETLINK_ERROR",
    -146: "BIER_BSL_UNSUP",
    -147: "INSTANCE_IN_USE",
    -148: "INVALID_SESSION_ID",
    -149: "ACL_IN_USE_BY_LOOKUP_CONTEXT",
    -150: "INVALID_VALUE_3",
    -151: "NON_ETHERNET",
    -152: "BD_ALREADY_HAS_BVI",
    -153: "INVALID_PROTOCOL",
    -154: "INVALID_ALGORITHM",
    -155: "RSRC_IN_USE",
    -156: "KEY_LENGTH",
    -157: "FIB_PATH_UNSUPPORTED_NH_PROTO",
    -159: "API_ENDIAN_FAILED",
    -160: "NO_CHANGE",
    -161: "MISSING_CERT_KEY",
    -162: "LIMIT_EXCEEDED",
    -163: "IKE_NO_PORT",
    -164: "UDP_PORT_TAKEN",
    -165: "EAGAIN",
    -166: "INVALID_VALUE_4",
    -167: "BUSY",
    -168: "BUG",
    -169: "FEATURE_ALREADY_DISABLED",
    -170: "FEATURE_ALREADY_ENABLED",
    -171: "INVALID_PREFIX_LENGTH",
}

#: What a name means, where the name alone does not say it.
MEANINGS: t.Final[dict[str, str]] = {
    "UNSPECIFIED": "VPP gives no reason; its log (show logging) may have one",
    "INVALID_SW_IF_INDEX": "there is no interface with this index",
    "NO_SUCH_FIB": "the table does not exist",
    "NO_SUCH_ENTRY": "what was named does not exist",
    "INVALID_VALUE": "a value is not valid here",
    "INVALID_VALUE_2": "the second value is not valid here",
    "UNIMPLEMENTED": "VPP does not implement it",
    "SYSCALL_ERROR_1": "a call to the kernel failed",
    "FEATURE_DISABLED": "the feature is switched off in the configuration of VPP",
    "NO_PATHS_IN_ROUTE": "a route needs at least one path",
    "INVALID_VLAN": "the VLAN number is out of range",
    "VLAN_ALREADY_EXISTS": "a sub-interface with these VLAN tags exists on the parent",
    "ADDRESS_NOT_FOUND_FOR_INTERFACE": "the interface does not have this address",
    "ADDRESS_LENGTH_MISMATCH": "the address is there with another prefix length",
    "IP6_NOT_ENABLED": "IPv6 is not enabled on the interface",
    "SUBIF_ALREADY_EXISTS": "the sub-interface exists",
    "INVALID_INTERFACE": "the host has no such interface in the network namespace of VPP, or its kind does not fit",
    "UNEXPECTED_INTF_STATE": "the interface is not in the state that this needs",
    "IF_ALREADY_EXISTS": "the interface exists",
    "VALUE_EXIST": "the value exists",
    "INVALID_WORKER": "there is no such worker thread",
    "ADDRESS_IN_USE": "the address is used elsewhere in VPP",
    "ADDRESS_FOUND_FOR_INTERFACE": "the interface has addresses, which must go first",
    "SUBIF_DOESNT_EXIST": "the sub-interface does not exist",
    "INVALID_QUEUE": "the interface has no such queue",
    "UNSUPPORTED": "the driver of the interface does not support it",
    "DUPLICATE_IF_ADDRESS": "another interface of VPP has this address or a network that overlaps it",
    "INSTANCE_IN_USE": "the number is taken",
    "NON_ETHERNET": "the interface is not an Ethernet interface",
    "RSRC_IN_USE": "something still uses it",
    "LIMIT_EXCEEDED": "a limit is reached",
    "INIT_FAILED": "the device could not be set up; VPP's log (show logging) says why",
    "BUG": "a fault inside VPP",
}

#: What to do, where it is always the same.
REMEDIES: t.Final[dict[str, str]] = {
    "DUPLICATE_IF_ADDRESS": "Take the address off the other interface first, or put the interfaces into different VRFs",
    "NOT_RUNNING_AS_ROOT": "VPP itself must run as root for this",
    "EAGAIN": "Run it again",
    "BUSY": "Run it again",
}


def name_of(retval: int) -> str:
    return NAMES.get(retval, "UNKNOWN")


def meaning_of(retval: int) -> str:
    """In words; a number from a newer VPP is said to be unknown, not guessed."""
    name = name_of(retval)
    if name == "UNKNOWN":
        return "a number that this version of the collection does not know"
    return MEANINGS.get(name, name.lower().replace("_", " "))


#: A request's first letters -> the plugin that brings it. The longest match counts.
PLUGINS: t.Final[dict[str, str]] = {
    "abf_": "abf_plugin.so",
    "acl_": "acl_plugin.so",
    "af_packet_": "af_packet_plugin.so",
    "af_xdp_": "af_xdp_plugin.so",
    "det44_": "det44_plugin.so",
    "lcp_": "linux_cp_plugin.so",
    "memif_": "memif_plugin.so",
    "mss_clamp_": "mss_clamp_plugin.so",
    "nat44_ed_": "nat_plugin.so",
    "nat44_ei_": "nat44_ei_plugin.so",
    "nat44_": "nat_plugin.so",
    "nat64_": "nat64_plugin.so",
    "nat66_": "nat66_plugin.so",
    "nat_": "nat_plugin.so",
    "nsim_": "nsim_plugin.so",
    "tap_": "tap_plugin.so",
    "sw_interface_tap_v2_": "tap_plugin.so",
    "wireguard_": "wireguard_plugin.so",
}


def plugin_of(request: str) -> str | None:
    found = [prefix for prefix in PLUGINS if request.startswith(prefix)]
    return PLUGINS[max(found, key=len)] if found else None


def message_missing(request: str, version: str | None = None) -> VppMessageMissing:
    vpp = f"VPP {version}" if version else "this VPP"
    plugin = plugin_of(request)
    if plugin:
        return VppMessageMissing(
            f"{vpp} does not know the request {request}: its plugin {plugin} is not loaded",
            remedy=f"In startup.conf: plugins {{ plugin {plugin} {{ enable }} }}, then restart VPP",
            code="vpp_plugin_missing",
        )
    return VppMessageMissing(
        f"{vpp} does not know the request {request}",
        remedy="Use a VPP of a version that has it",
        code="vpp_request_unknown",
    )
