"""A program that the kernel kills at its first socket that is not one of this computer alone.

``python socket_filter.py FILE.json`` runs command lines of `mamamia` one after the other, and
prints a line for each with its exit status; ``python socket_filter.py FILE.py ...`` is that
program. The filter is the kernel's (seccomp), so it holds for libraries in C and for processes that
are started, too, whatever they call.

Source: seccomp(2), linux/seccomp.h, linux/filter.h, linux/audit.h; numbers of asm/unistd.h.
"""

import ctypes
import json
import platform
import runpy
import struct
import sys
from pathlib import Path

MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The audit number, and that of the call `socket`."""
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
UNIX = 1
"""AF_UNIX: the C library asks a name service of this computer for accounts by it."""
ALLOW, KILL = 0x7FFF0000, 0x80000000


def forbid_sockets() -> None:
    """Let the kernel end this process, and all that it starts, at `socket`, but for AF_UNIX."""
    audit, socket = MACHINES[platform.machine()]
    steps = (
        (LOAD, 0, 0, 4),
        (JUMP_EQUAL, 1, 0, audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),
        (JUMP_EQUAL, 0, 3, socket),
        (LOAD, 0, 0, 16),
        (JUMP_EQUAL, 1, 0, UNIX),
        (RETURN, 0, 0, KILL),
        (RETURN, 0, 0, ALLOW),
    )
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in steps))
    head = struct.pack("HP", len(steps), ctypes.addressof(program))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SET_SECCOMP, FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter")


def run_command(words: list[str]) -> int:
    """Be `mamamia`; return how it ended."""
    from napari_mamamia.cli import main

    sys.argv = ["mamamia", *words]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    forbid_sockets()
    del sys.argv[0]
    if sys.argv[0].endswith(".py"):
        sys.path.insert(0, str(Path(sys.argv[0]).parent))
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        for line in json.loads(Path(sys.argv[0]).read_text()):
            sys.stdout.write(f"ended {run_command(line)}\n")
            sys.stdout.flush()
