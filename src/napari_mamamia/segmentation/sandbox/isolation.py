"""Kinds of sandbox for untrusted programs, tested by trial runs on this computer.

A sandboxed program has no network access, can only read its input files, and can write to only one
folder.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.choices import IsolationKind
from napari_mamamia.core.errors import ModelError, Remedy
from napari_mamamia.core.program.child_environment import find_program
from napari_mamamia.core.program.child_process import answer_of
from napari_mamamia.core.program.system import account, is_root
from napari_mamamia.segmentation.sandbox.cgroup import control_group
from napari_mamamia.segmentation.sandbox.seccomp import call_filter, filter_file

CHALLENGE_IMAGE: Final = "lgarrucho/codabench-gpu:latest"
"""The container image for submissions. Source: the challenge's sample submission."""

_TRY_SECONDS: Final = 20.0
SCRATCH: Final = ("/tmp", "/app/program", "/dev/shm")  # noqa: S108 - of the closed room
_HIDDEN: Final = ("kcore", "keys", "key-users", "timer_list", "sysrq-trigger", "kmsg", "kallsyms")
"""Files in /proc with data about the whole computer, which are hidden from programs.

Source: the masked paths of containers (runc).
"""
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_DEVICES: Final = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm*", "nvidia-modeset", "dxg")


@dataclass(frozen=True, slots=True)
class Isolation:
    """The sandbox in which a program runs; `image` is the container image, if there is one.

    `has_filter` states whether bubblewrap gets a filter for system calls. `holds_processes` and
    `holds_memory` state whether the kernel counts the sandbox's processes and memory. Containers
    have their own filter and counts.
    """

    kind: IsolationKind
    program: str = ""
    version: str = ""
    image: str = ""
    has_filter: bool = False
    holds_processes: bool = True
    holds_memory: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether the program is restricted in any way."""
        return self.kind is not IsolationKind.NONE

    @property
    def text(self) -> str:
        """Description of the sandbox for logs, provenance and the screen."""
        if not self.is_closed:
            return "not isolated"
        image = f", image {self.image}" if self.image else ""
        if self.kind is IsolationKind.BUBBLEWRAP:
            image = ", system calls filtered" if self.has_filter else ", system calls not filtered"
            image += "" if self.holds_processes else ", processes counted by us only"
            image += ", memory counted by the kernel" if self.holds_memory else ""
        return f"isolated by {self.kind.value} {self.version}{image}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class IsolationCheck:
    """Result of the trial runs: the working sandboxes, best first, and why the others failed."""

    usable: tuple[Isolation, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The files of a sandbox, as pairs of a path outside and a path inside the sandbox.

    `readable` paths are mounted read-only in this order. Only `output` is writable, apart from
    temporary folders of `scratch_bytes` that are deleted with the sandbox. Containers enforce
    `memory_bytes` and `processes` themselves.
    """

    readable: tuple[tuple[Path, str], ...]
    output: tuple[Path, str]
    scratch_bytes: int
    memory_bytes: int
    processes: int


def require_no_root(*, as_root: bool) -> None:
    """Raise `ModelError` if root would run an untrusted program without explicit permission.

    The kernel treats a sandboxed program as a process of the user who started it. Therefore a
    program that escapes from root's sandbox has root's rights.
    """
    if is_root() and not as_root:
        raise ModelError(
            "expected an ordinary account to run the untrusted program, but this account is "
            "root, which can access every file of this computer: use another account, or allow "
            "root",
            remedies=(Remedy("as_root"),),
        )


def has_graphics_card() -> bool:
    """Return whether there is a GPU that a sandbox can use."""
    return any(True for pattern in _DEVICES for _ in Path("/dev").glob(pattern))


def find_isolation(
    kinds: Sequence[IsolationKind] = tuple(IsolationKind)[:-1], image: str = CHALLENGE_IMAGE
) -> IsolationCheck:
    """Return which kinds of sandbox work on this computer, found by trial runs.

    Parameters
    ----------
    kinds
        The kinds to test.
    image
        The container image for docker and podman.
    """
    tries = {
        IsolationKind.BUBBLEWRAP: lambda: _try_bubblewrap(),
        IsolationKind.PODMAN: lambda: _try_container(IsolationKind.PODMAN, image),
        IsolationKind.DOCKER: lambda: _try_container(IsolationKind.DOCKER, image),
    }
    outcomes = [tries[kind]() for kind in kinds if kind in tries]
    return IsolationCheck(
        tuple(item for item in outcomes if isinstance(item, Isolation)),
        tuple(item for item in outcomes if isinstance(item, str)),
    )


def bubblewrap_command(
    program: str, sandbox: Sandbox, command: Sequence[str], filter_file: int | None = None
) -> tuple[str, ...]:
    """Return the command line that runs `command` in a bubblewrap sandbox.

    The sandbox's root is empty except for ``/usr`` with its libraries, five entries of ``/etc``,
    GPUs, and the files of `sandbox`. Source of the options: bwrap(1), 0.8.

    Parameters
    ----------
    program
        Path of bubblewrap.
    sandbox
        The files of the sandbox.
    command
        The command to run.
    filter_file
        Descriptor of the open file with the system-call filter; None for no filter.
    """
    size = str(sandbox.scratch_bytes)
    line = [
        *_list_room_options(program, filter_file),
        *_list_system_options(),
        *_kernel_files(),
        *_graphics_cards(),
        *(word for folder in SCRATCH for word in ("--size", size, "--tmpfs", folder)),
        # After the temporary folders, one of which is in /dev.
        *("--remount-ro", "/dev"),
    ]
    for outside, inside in sandbox.readable:
        line += ["--ro-bind", str(outside), inside]
    # The root comes last: before, bubblewrap creates the mount points in it.
    line += ["--bind", str(sandbox.output[0]), sandbox.output[1], "--remount-ro", "/"]
    return (*line, "--chdir", "/app/program", "--", *command)


def container_command(
    isolation: Isolation, sandbox: Sandbox, command: Sequence[str], name: str
) -> tuple[str, ...]:
    """Return the command line that runs `command` in a container.

    Source of the options: docker-run(1), podman-run(1).

    Parameters
    ----------
    isolation
        The kind of container and its image.
    sandbox
        The files of the sandbox.
    command
        The command to run.
    name
        Name of the container.
    """
    line = [
        *(isolation.program, "run", "--rm", "--interactive", "--name", name, "--pull", "never"),
        *("--network", "none", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--pids-limit", str(sandbox.processes)),
        *("--memory", str(sandbox.memory_bytes), "--workdir", "/app/program", "--env", "HOME=/tmp"),
    ]
    if user := account():
        line += ["--user", f"{user[0]}:{user[1]}"]
    if isolation.kind is IsolationKind.PODMAN:
        line += ["--userns", "keep-id"]
    if any(Path("/dev").glob("nvidia[0-9]*")):
        line += ["--gpus", "all"]
    for folder in SCRATCH[:2]:
        line += ["--tmpfs", f"{folder}:size={sandbox.scratch_bytes},mode=1777"]
    for outside, inside in sandbox.readable:
        line += ["--mount", f"type=bind,source={outside},target={inside},readonly"]
    line += ["--mount", f"type=bind,source={sandbox.output[0]},target={sandbox.output[1]}"]
    return (*line, isolation.image, *command)


def _kernel_files() -> Iterator[str]:
    """Yield the options for /proc and /dev, in which all of /proc is read-only.

    The kernel treats the sandbox's user as the user who created it, so root could write to
    ``/proc/sys``.
    """
    yield from ("--proc", "/proc", "--dev", "/dev")
    for name in _HIDDEN:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    yield from ("--remount-ro", "/proc")


def _list_room_options(program: str, filter_file: int | None) -> Iterator[str]:
    """Yield the sandbox program with the options that separate the sandbox from the system."""
    yield from (program, "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000")
    yield from ("--disable-userns", "--cap-drop", "ALL", "--hostname", "room")
    yield from ("--die-with-parent", "--new-session")
    if filter_file is not None:
        yield from ("--seccomp", str(filter_file))


def _list_system_options() -> Iterator[str]:
    """Yield options for the system folders that programs need, without personal files."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), f"/{name}")
        elif path.is_dir():
            yield from ("--ro-bind", f"/{name}", f"/{name}")
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _graphics_cards() -> Iterator[str]:
    cards = [str(card) for pattern in _DEVICES for card in sorted(Path("/dev").glob(pattern))]
    for card in cards:
        yield from ("--dev-bind-try", card, card)
    if cards:
        yield from ("--ro-bind-try", "/sys/devices/system", "/sys/devices/system")


def _try_bubblewrap() -> Isolation | str:
    program = find_program("bwrap")
    if program is None:
        return "bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
    tried = _tried_room(program, call_filter())
    has_filter = tried is None and call_filter() is not None
    # A system without such filters can still make a sandbox; it is reported as unfiltered.
    if tried is not None and "seccomp" in tried:
        tried = _tried_room(program, None)
    if tried is None:
        version = _try_command([program, "--version"], wanted=True) or ""
        number = version.rpartition(" ")[2]
        with control_group(1, 2**30) as group:
            return Isolation(
                IsolationKind.BUBBLEWRAP,
                program,
                number,
                has_filter=has_filter,
                # RLIMIT_NPROC limits the processes of an ordinary account, but not root's.
                holds_processes=not is_root() or bool(group.prefix),
                holds_memory=group.holds_memory,
            )
    if "nknown option" in tried:
        return f"bubblewrap is too old ({tried}): version 0.8 or later is needed"
    return (
        "bubblewrap is installed, but this system does not allow it to create a sandbox "
        f"({tried}): inside a container or virtual environment, ask for user namespaces to be "
        "allowed"
    )


def _tried_room(program: str, content: bytes | None) -> str | None:
    """Return None if bubblewrap can create a small sandbox with a filter, otherwise its error."""
    with nullcontext() if content is None else filter_file(content) as number:
        sandbox = (
            *_list_system_options(),
            *_kernel_files(),
            "--size",
            "65536",
            "--tmpfs",
            SCRATCH[0],
        )
        line = (
            *_list_room_options(program, number),
            *sandbox,
            "--remount-ro",
            "/",
            "/usr/bin/true",
        )
        return _try_command(line, kept_files=() if number is None else (number,))


def _try_container(kind: IsolationKind, image: str) -> Isolation | str:
    program = find_program(kind.value)
    if program is None:
        return f"{kind.value} is not installed"
    if (problem := _try_command([program, "info"])) is not None:
        return f"{kind.value} is installed, but does not respond ({problem}): start it first"
    if _try_command([program, "image", "inspect", image]) is not None:
        return (
            f"{kind.value} works, but has no image {image}, and nothing is downloaded "
            f"automatically: fetch it with  {kind.value} pull {image}"
        )
    version = _try_command([program, "--version"], wanted=True) or ""
    number = next((word for word in version.split() if word[:1].isdigit()), "")
    return Isolation(kind, program, number.rstrip(","), image)


def _try_command(
    command: Sequence[str], *, wanted: bool = False, kept_files: Sequence[int] = ()
) -> str | None:
    """Return None if a command succeeds, otherwise its error in one line.

    With `wanted`, the output of a successful command is returned instead.
    """
    answer = answer_of(command, _TRY_SECONDS, kept_files)
    if wanted:
        return None if answer.problem else answer.said.strip()
    if answer.is_good:
        return None
    lines = [line for line in answer.errors.splitlines() if line.strip()]
    return answer.problem or (lines[-1][:200] if lines else f"exit code {answer.code}")
