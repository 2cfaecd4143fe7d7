"""The resources that an untrusted program can hold, and how each is limited.

The filter (`seccomp`), the counts (`watch`, `held`) and the limits that the runner sets follow this
list; docs/security.md shows it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_KIBIBYTE: Final = 1024

# Bytes counted for each kernel object: the most that it can hold by Linux' own sizes. A socket
# counts by this computer's buffers: see `watch`.
THREAD_BYTES: Final = 32 * _KIBIBYTE  # a stack of 16 KiB and its descriptor
PIPE_BYTES: Final = 64 * _KIBIBYTE  # 16 pages; the filter refuses larger ones
TERMINAL_BYTES: Final = 128 * _KIBIBYTE  # buffers of both ends
HANDLE_BYTES: Final = 2 * _KIBIBYTE  # an open file of any other kind
MAPPING_BYTES: Final = 384
EMPTY_FILE_BYTES: Final = 1536  # in a folder in memory: its inode and its name


class Hold(StrEnum):
    """Method that keeps a kind of resource within its limit."""

    DENIED = "denied"
    """Denied by the filter of system calls: in bubblewrap, on x86_64 and aarch64."""
    COUNTED = "counted"
    """Counted on Linux, ten times a second or as often as 5 % of a core allows."""
    LIMITED = "limited"
    """Limited by the kernel."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of resource; `calls` are the system calls that the filter refuses for it."""

    name: str
    hold: Hold
    how: str
    calls: tuple[str, ...] = ()


RESOURCES: Final = (
    Resource("resident memory, swap, huge pages", Hold.COUNTED, "memory: `/proc/PID/status`"),
    Resource("page tables", Hold.COUNTED, "memory: VmPTE"),
    Resource("threads", Hold.COUNTED, "memory: 32 KiB each"),
    Resource("scratch folders", Hold.COUNTED, "memory: bytes, and 1.5 KiB a file"),
    Resource("unix sockets", Hold.COUNTED, "memory: twice the usual buffer each, in transit too"),
    Resource("TCP and UDP sockets", Hold.COUNTED, "memory: largest buffers, if data wait"),
    Resource("pipes, terminals, open files", Hold.COUNTED, "memory: 64, 128, 2 KiB each"),
    Resource("mappings", Hold.COUNTED, "memory: 384 bytes each"),
    Resource("shared memory without a name", Hold.COUNTED, "memory: as mapped"),
    Resource("memfd", Hold.DENIED, "with a GPU: counted", ("memfd_create",)),
    Resource(
        "System V and POSIX message queues, semaphores, shared memory",
        Hold.DENIED,
        "own IPC namespace too",
        ("shmget", "msgget", "semget", "mq_open"),
    ),
    Resource(
        "pages kept by pipes and sockets",
        Hold.DENIED,
        "no splice, sendfile, larger buffers, zero-copy",
        ("splice", "tee", "vmsplice", "sendfile"),
    ),
    Resource(
        "io_uring, keys, BPF, perf, inotify, fanotify, userfaultfd, landlock, filters of its own",
        Hold.DENIED,
        "no such calls",
        (
            *("io_uring_setup", "add_key", "bpf", "perf_event_open", "inotify_init1"),
            *("fanotify_init", "userfaultfd", "landlock_create_ruleset", "seccomp"),
        ),
    ),
    Resource("open files of a process", Hold.LIMITED, "RLIMIT_NOFILE, 8192"),
    Resource("open files, file locks, epoll's watches", Hold.COUNTED, "65,536 in all"),
    Resource("processes, ended ones too", Hold.LIMITED, "RLIMIT_NPROC, control group; counted"),
    Resource("pending signals, timers", Hold.LIMITED, "RLIMIT_SIGPENDING, 4096"),
    Resource("size of a file", Hold.LIMITED, "RLIMIT_FSIZE"),
    Resource("files in the output folder", Hold.COUNTED, "output: bytes, 64 KiB at least"),
    Resource("files there without a name", Hold.COUNTED, "output: through open handles"),
    Resource(
        "such files mapped or in transit",
        Hold.COUNTED,
        "output: all bytes that the program wrote",
        ("fallocate",),
    ),
    Resource("all of memory", Hold.LIMITED, "cgroup v2, where it may be used"),
)
