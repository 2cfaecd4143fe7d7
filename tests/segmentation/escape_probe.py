"""Looks for ways out of the closed room from inside: it opens, reads and asks, and harms nothing.

Standard library only. `look(out)` returns what it found as a dictionary of plain values.
"""

import ctypes
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)

# number on x86_64, and arguments that do nothing where the call is allowed
CALLS = {
    "unshare": (272, (0,)),
    "ptrace": (101, (999, 0, 0, 0)),
    "memfd_create": (319, (b"x", 0)),
    "io_uring_setup": (425, (0, 0)),
    "perf_event_open": (298, (0, 0, -1, -1, 0)),
    "add_key": (248, (0, 0, 0, 0, -3)),
    "process_vm_readv": (310, (1, 0, 0, 0, 0, 0)),
    "setns": (308, (-1, 0)),
    "shmget": (29, (0, 4096, 0o1600)),
    "userfaultfd": (323, (1,)),
    "bpf": (321, (99, 0, 0)),
    "clone3": (435, (0, 0)),
    "clone_new_user": (56, (0x10000000 | 0x20000, 0, 0, 0, 0)),
    "personality": (135, (0x0008,)),
    "mount": (165, (0, b"/tmp", 0, 32, 0)),
    "kexec_load": (246, (0, 0, 0, 0)),
    "msgget": (68, (0, 0o1600)),
    "semget": (64, (0, 1, 0o1600)),
    "mq_open": (240, (b"x", 0o102, 0o600, 0)),
    "splice": (275, (-1, 0, -1, 0, 1, 0)),
    "tee": (276, (-1, -1, 1, 0)),
    "vmsplice": (278, (-1, 0, 0, 0)),
    "sendfile": (40, (-1, -1, 0, 1)),
    "inotify_init1": (294, (0,)),
    "landlock_create_ruleset": (444, (0, 0, 1)),
    "seccomp": (317, (2, 0, 0)),
    "own_filter": (157, (22, 9, 0, 0, 0)),
    "fallocate": (285, (-1, 0, 0, 1)),
    "close_range_unshare": (436, (900, 900, 2)),
    "own_lock": (72, (0, 37, 0)),
    "larger_pipe": (72, (1, 1031, 2**20)),
    "larger_buffer": (54, (0, 1, 7, b"\0\0\x10\0", 4)),
    "undumpable": (157, (4, 0, 0, 0, 0)),
    "x32_getpid": (0x40000000 + 39, ()),
}
FAMILIES = {"vsock": 40, "netlink": 16, "packet": 17, "alg": 38, "unix": 1, "inet": 2}


def look(out, outside):
    """`outside`: an abstract socket's name, a socket's path, files and a process of the host."""
    return {
        "writable": sorted(writable()),
        "readable": [path for path in outside["files"] if is_readable(path)],
        "status": status(),
        "calls": {name: called(*call) for name, call in CALLS.items()},
        "families": {name: opened(number) for name, number in FAMILIES.items()},
        "abstract": connected("\0" + outside["abstract"]),
        "socket": connected(outside["socket"]),
        "files_open": open_files(),
        "variables": sorted(os.environ),
        "devices": sorted(entry.name for entry in Path("/dev").iterdir()),
        "links": made(lambda: os.link("/app/runner.py", f"{out}/link")),
        "node": made(lambda: os.mknod(f"{out}/node", stat.S_IFCHR | 0o666, os.makedev(1, 3))),
        "block": made(lambda: os.mknod(f"{out}/block", stat.S_IFBLK | 0o666, os.makedev(254, 0))),
        "chroot": made(lambda: os.chroot("/tmp")),
        "root": made(lambda: os.setuid(0)),
        "other_processes": [p.name for p in Path("/proc").iterdir() if p.name.isdigit()],
        "interfaces": [name for _, name in socket.if_nameindex()] if can_list() else ["lo"],
    }


def writable():
    """Yield what can be opened for writing outside of the output and the scratch folders."""
    for top in ("/proc", "/sys", "/dev", "/etc", "/app", "/usr/bin", "/usr/lib/python3", "/home"):
        for folder, folders, files in os.walk(top):
            folders[:] = [f for f in folders if not skipped(f"{folder}/{f}")]
            for name in files:
                path = f"{folder}/{name}"
                if is_writable(path):
                    yield path
    for folder in ("/", "/usr", "/etc", "/app", "/proc", "/dev", "/home"):
        try:
            os.close(os.open(f"{folder}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            yield f"{folder}/new"
        except OSError:
            pass


def skipped(path):
    parts = path.split("/")
    own = len(parts) == 3 and parts[1] == "proc" and parts[2].isdigit() and int(parts[2]) > 2
    return own or path in ("/app/output", "/app/program", "/dev/shm", "/dev/pts", "/dev/fd")


def is_writable(path):
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


def is_readable(path):
    try:
        with Path(path).open("rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def status():
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid")
    lines = (line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {line[0]: line[1].split()[0] for line in lines if line[0] in wanted}


def called(number, arguments):
    """Return the error number of a system call, 0 if it did not refuse."""
    child = os.fork()  # an unshared or new process is this one's only
    if child == 0:
        result = LIBC.syscall(ctypes.c_long(number), *arguments)
        os._exit(0 if result >= 0 else ctypes.get_errno())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def opened(family):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        return True
    return False


def connected(address):
    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(address)
        except OSError:
            return False
        return True


def open_files():
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return found


def made(action):
    try:
        action()
    except OSError as error:
        return error.strerror
    return "done"


def can_list():
    try:
        socket.if_nameindex()
    except OSError:
        return False
    return True
