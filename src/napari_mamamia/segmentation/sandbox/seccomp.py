"""System-call filter for bubblewrap's sandbox, as a BPF program for the kernel.

The sandbox hides files and the network, but not the kernel itself. No submission needs to mount,
trace, load kernel modules, create namespaces, or communicate outside the network namespace
(``AF_VSOCK`` reaches a virtual machine's host from every network namespace). Calls that would hold
memory or files that `watch` cannot count are denied too: every denied row of `watch.RESOURCES` is
denied here. Source: seccomp(2), linux/seccomp.h, linux/bpf_common.h, linux/audit.h. The numbers are
from asm/unistd_64.h (x86_64) and asm-generic/unistd.h (aarch64); the list follows Docker's default
list.
"""

import os
import platform
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EAFNOSUPPORT, EINVAL, ENOSYS, EOPNOTSUPP, EPERM
from typing import Final

_FORBIDDEN: Final = """
    mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, move_mount 429 429,
    open_tree 428 428, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433,
    mount_setattr 442 442, swapon 167 224, swapoff 168 225, reboot 169 142, sethostname 170 161,
    setdomainname 171 162, iopl 172 -, ioperm 173 -, modify_ldt 154 -, init_module 175 105,
    finit_module 313 273, delete_module 176 106, create_module 174 -, quotactl 179 60,
    quotactl_fd 443 443, nfsservctl 180 42, acct 163 89, settimeofday 164 170,
    clock_settime 227 112, clock_adjtime 305 266, adjtimex 159 171, kexec_load 246 104,
    kexec_file_load 320 294, bpf 321 280, perf_event_open 298 241, ptrace 101 117,
    process_vm_readv 310 270, process_vm_writev 311 271, pidfd_getfd 438 438, kcmp 312 272,
    add_key 248 217, request_key 249 218, keyctl 250 219, userfaultfd 323 282, unshare 272 97,
    setns 308 268, name_to_handle_at 303 264, open_by_handle_at 304 265, fanotify_init 300 262,
    lookup_dcookie 212 18, syslog 103 116, vhangup 153 58, io_uring_setup 425 425,
    io_uring_enter 426 426, io_uring_register 427 427, uselib 134 -, ustat 136 -, sysfs 139 -,
    _sysctl 156 -, memfd_create 319 279, memfd_secret 447 447, shmget 29 194
"""
"""Denied system calls: name, number on x86_64, and number on aarch64."""
_LACKING: Final = """
    msgget 68 186, semget 64 190, mq_open 240 180, splice 275 76, tee 276 77, vmsplice 278 75,
    sendfile 40 71, inotify_init 253 -, inotify_init1 294 26, landlock_create_ruleset 444 444,
    seccomp 317 277
"""
"""System calls reported as missing, because programs have alternatives; see `_FORBIDDEN`."""

_NEW_ROOMS: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of linux/sched.h."""
_FAMILIES: Final = (1, 2, 10)
"""AF_UNIX, AF_INET and AF_INET6, which libraries use for communication within a computer."""
_OWN_PERSONALITIES: Final = (0, 0xFFFFFFFF)
_THREAD: Final = 0x00010000
_SHARES_FILES: Final = 0x00000400
"""CLONE_THREAD and CLONE_FILES; with both, /proc/PID/fd shows the open files of all threads."""
_UNSHARES_FILES: Final = 2
"""The flag CLOSE_RANGE_UNSHARE of linux/close_range.h."""
_TERMINAL_INPUT: Final = {0x5412: EPERM, 0x541C: EPERM}
"""The ioctls TIOCSTI and TIOCLINUX, which insert terminal input. Source: asm-generic/ioctls.h."""
_SIZES: Final = {1031: EPERM, 37: EINVAL, 38: EINVAL}
"""The fcntl commands F_SETPIPE_SZ and F_OFD_SETLK(W), which are denied. Source: linux/fcntl.h."""
_BUFFERS: Final = {7: EPERM, 8: EPERM, 60: EPERM}
"""The denied socket options SO_SNDBUF, SO_RCVBUF and SO_ZEROCOPY. Source: asm-generic/socket.h."""
_SOCKET_LEVEL: Final = 1
_OF_ITSELF: Final = {4: EPERM, 22: EINVAL}
"""Options of prctl that are denied.

PR_SET_DUMPABLE would hide a process's open files from other processes; PR_SET_SECCOMP would add
filters in kernel memory. Source: prctl(2).
"""
_X32: Final = 0x40000000
"""Bit that marks x86_64 calls with 32-bit pointers, which have different numbers."""

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Offsets in struct seccomp_data; for an argument, the offset of its lower half (little-endian)."""
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000


@dataclass(frozen=True, slots=True)
class _Machine:
    """An architecture with its audit number, table column, and calls with checked arguments."""

    audit: int
    column: int
    clone: int
    clone3: int
    socket: int
    personality: int
    ioctl: int
    fcntl: int
    setsockopt: int
    prctl: int
    close_range: int
    fallocate: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, 1, 56, 435, 41, 135, 16, 72, 54, 157, 436, 285),
    "aarch64": _Machine(0xC00000B7, 2, 220, 435, 198, 92, 29, 25, 208, 167, 436, 47),
}


def call_filter(machine: str = "", spared: Sequence[str] = ()) -> bytes | None:
    """Return the filter for an architecture, or None if the architecture is not supported.

    Denied calls return an error, as on a system that lacks them; no process is killed.

    Parameters
    ----------
    machine
        The architecture; "" for this computer's architecture.
    spared
        Names of calls to allow.
    """
    # Programs of 32 bits use other numbers for calls.
    if sys.maxsize < 2**32:
        return None
    entry = _MACHINES.get(machine or platform.machine())
    return None if entry is None else b"".join(_make_program(entry, spared))


@contextmanager
def filter_file(content: bytes) -> Iterator[int]:
    """Yield an open file that contains the filter, for bubblewrap."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as stream:
            stream.write(content)  # some 1000 bytes; a pipe takes 65,536 without a reader
        yield reading
    finally:
        os.close(reading)


def _make_program(machine: _Machine, spared: Sequence[str]) -> Iterator[bytes]:
    yield _make_step(_LOAD, _ARCHITECTURE)
    yield _make_step(_JUMP_EQUAL, machine.audit, then=1)
    yield _make_step(_RETURN, _ERROR | ENOSYS)
    yield _make_step(_LOAD, _NUMBER)
    if machine.column == 1:
        yield _make_step(_JUMP_ABOVE, _X32, otherwise=1)
        yield _make_step(_RETURN, _ERROR | ENOSYS)
    for calls, error in ((_FORBIDDEN, EPERM), (_LACKING, ENOSYS)):
        for entry in calls.split(","):
            name, number = entry.split()[0], entry.split()[machine.column]
            if number != "-" and name not in spared:
                yield from _match_call(int(number), _make_step(_RETURN, _ERROR | error))
    # The flags of clone3 are in memory, which a filter cannot read; libraries fall back to clone.
    yield from _match_call(machine.clone3, _make_step(_RETURN, _ERROR | ENOSYS))
    yield from _match_call(
        machine.clone,
        _make_step(_LOAD, _FIRST),
        _make_step(_JUMP_BITS, _NEW_ROOMS, then=2),
        _make_step(_JUMP_BITS, _THREAD, otherwise=2),
        _make_step(_JUMP_BITS, _SHARES_FILES, then=1),
        _make_step(_RETURN, _ERROR | EPERM),
        _make_step(_RETURN, _ALLOW),
    )
    yield from _match_call(
        machine.close_range,
        _make_step(_LOAD, _THIRD),
        _make_step(_JUMP_BITS, _UNSHARES_FILES, otherwise=1),
        _make_step(_RETURN, _ERROR | EINVAL),
        _make_step(_RETURN, _ALLOW),
    )
    # It allocates space without writing a byte; libraries write zeros instead.
    yield from _match_call(machine.fallocate, _make_step(_RETURN, _ERROR | EOPNOTSUPP))
    yield from _allow_only(machine.socket, _FIRST, _FAMILIES, EAFNOSUPPORT)
    yield from _allow_only(machine.personality, _FIRST, _OWN_PERSONALITIES, EPERM)
    yield from _refuse_values(machine.ioctl, _SECOND, _TERMINAL_INPUT)
    yield from _refuse_values(machine.fcntl, _SECOND, _SIZES)
    yield from _refuse_values(machine.prctl, _FIRST, _OF_ITSELF)
    is_other_level = (
        _make_step(_LOAD, _SECOND),
        _make_step(_JUMP_EQUAL, _SOCKET_LEVEL, then=1),
        _make_step(_RETURN, _ALLOW),
    )
    yield from _refuse_values(machine.setsockopt, _THIRD, _BUFFERS, is_other_level)
    yield _make_step(_RETURN, _ALLOW)


def _refuse_values(
    number: int, argument: int, errors: Mapping[int, int], before: tuple[bytes, ...] = ()
) -> Iterator[bytes]:
    """Yield the filter steps that deny a call for some values of an argument."""
    refusals = (
        step
        for value, error in errors.items()
        for step in (
            _make_step(_JUMP_EQUAL, value, otherwise=1),
            _make_step(_RETURN, _ERROR | error),
        )
    )
    allow = _make_step(_RETURN, _ALLOW)
    yield from _match_call(number, *before, _make_step(_LOAD, argument), *refusals, allow)


def _allow_only(
    number: int, argument: int, allowed: tuple[int, ...], error: int
) -> Iterator[bytes]:
    """Yield the filter steps that allow a call only for some values of an argument."""
    passes = (
        step
        for value in allowed
        for step in (_make_step(_JUMP_EQUAL, value, otherwise=1), _make_step(_RETURN, _ALLOW))
    )
    refusal = _make_step(_RETURN, _ERROR | error)
    yield from _match_call(number, _make_step(_LOAD, argument), *passes, refusal)


def _match_call(number: int, *steps: bytes) -> Iterator[bytes]:
    """Yield the filter steps for one call; the last of them ends the program."""
    yield _make_step(_JUMP_EQUAL, number, otherwise=len(steps))
    yield from steps


def _make_step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return a struct sock_filter; `then` and `otherwise` are the numbers of steps to skip."""
    return struct.pack("=HBBI", code, then, otherwise, value)
