"""Closed rooms for programs that are not trusted: what this computer has, found out by trying.

A room has no network, sees the files it was given read-only, and can write to one folder.
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
"""The container image that the challenge runs submissions in. Source: its sample submission."""

_TRY_SECONDS: Final = 20.0
SCRATCH: Final = ("/tmp", "/app/program", "/dev/shm")  # noqa: S108 - of the closed room
_HIDDEN: Final = ("kcore", "keys", "key-users", "timer_list", "sysrq-trigger", "kmsg", "kallsyms")
"""Files of /proc that tell of the whole computer. Source: the masked paths of containers (runc)."""
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_DEVICES: Final = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm*", "nvidia-modeset", "dxg")


@dataclass(frozen=True, slots=True)
class Isolation:
    """A way to run a program in a closed room; `image` is a container's.

    `has_filter` says whether bubblewrap is handed a filter of system calls, `holds_processes`
    whether the system counts its processes, `holds_memory` whether it counts its memory too;
    containers have their own of all.
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
        """Whether it keeps anything in."""
        return self.kind is not IsolationKind.NONE

    @property
    def text(self) -> str:
        """How it is said in logs, provenance and on the screen."""
        if not self.is_closed:
            return "not isolated"
        image = f", image {self.image}" if self.image else ""
        if self.kind is IsolationKind.BUBBLEWRAP:
            image = ", system calls filtered" if self.has_filter else ", system calls not filtered"
            image += "" if self.holds_processes else ", processes counted by looking only"
            image += ", memory counted by the system" if self.holds_memory else ""
        return f"isolated by {self.kind.value} {self.version}{image}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class IsolationCheck:
    """What was found by trying: what works, best first, and why the rest does not."""

    usable: tuple[Isolation, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a program may see and write, as pairs of a place outside and one in the room.

    `readable` are laid down in this order, all read-only; `output` alone is writable beside
    scratch space of `scratch_bytes` that vanishes with the room. `memory_bytes` and `processes`
    are kept by containers themselves.
    """

    readable: tuple[tuple[Path, str], ...]
    output: tuple[Path, str]
    scratch_bytes: int
    memory_bytes: int
    processes: int


def require_no_root(*, as_root: bool) -> None:
    """Raise `ModelError` if a foreign program would be run by root without being asked for so.

    A room's program is its maker to the system: what slips out of root's room is root.
    """
    if is_root() and not as_root:
        raise ModelError(
            "a foreign program should be run by an account of its own rights only, but this is "
            "root, to whom every file of this computer is open: use another account, or allow root",
            remedies=(Remedy("as_root"),),
        )


def has_graphics_card() -> bool:
    """Whether a room would have one to show."""
    return any(True for pattern in _DEVICES for _ in Path("/dev").glob(pattern))


def find_isolation(
    kinds: Sequence[IsolationKind] = tuple(IsolationKind)[:-1], image: str = CHALLENGE_IMAGE
) -> IsolationCheck:
    """Return which of `kinds` work here; each is tried, not only looked for."""
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
    """Return the command line that runs `command` in a room made by bubblewrap.

    `filter_file` is the number of the open file that holds a filter of system calls.

    The room's root is empty but for ``/usr`` with its libraries, five entries of ``/etc``, graphics
    cards, and what `room` lists. Source of the options: bwrap(1), 0.8.
    """
    size = str(sandbox.scratch_bytes)
    line = [
        *_list_room_options(program, filter_file),
        *_list_system_options(),
        *_kernel_files(),
        *_graphics_cards(),
        *(word for place in SCRATCH for word in ("--size", size, "--tmpfs", place)),
        # Behind the scratch places, one of which lies in /dev.
        *("--remount-ro", "/dev"),
    ]
    for outside, inside in sandbox.readable:
        line += ["--ro-bind", str(outside), inside]
    # The root last: until then bubblewrap makes the places in it that things are laid on.
    line += ["--bind", str(sandbox.output[0]), sandbox.output[1], "--remount-ro", "/"]
    return (*line, "--chdir", "/app/program", "--", *command)


def container_command(
    isolation: Isolation, sandbox: Sandbox, command: Sequence[str], name: str
) -> tuple[str, ...]:
    """Return the command line that runs `command` in a container called `name`.

    Source of the options: docker-run(1), podman-run(1).
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
    for place in SCRATCH[:2]:
        line += ["--tmpfs", f"{place}:size={sandbox.scratch_bytes},mode=1777"]
    for outside, inside in sandbox.readable:
        line += ["--mount", f"type=bind,source={outside},target={inside},readonly"]
    line += ["--mount", f"type=bind,source={sandbox.output[0]},target={sandbox.output[1]}"]
    return (*line, isolation.image, *command)


def _kernel_files() -> Iterator[str]:
    """Yield /proc and /dev; all of /proc is read-only.

    The room's user is the room's maker to the system: root could write to ``/proc/sys``.
    """
    yield from ("--proc", "/proc", "--dev", "/dev")
    for name in _HIDDEN:
        if Path("/proc", name).exists():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    yield from ("--remount-ro", "/proc")


def _list_room_options(program: str, filter_file: int | None) -> Iterator[str]:
    """Yield the program and the options that part the room from the system around it."""
    yield from (program, "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000")
    yield from ("--disable-userns", "--cap-drop", "ALL", "--hostname", "room")
    yield from ("--die-with-parent", "--new-session")
    if filter_file is not None:
        yield from ("--seccomp", str(filter_file))


def _list_system_options() -> Iterator[str]:
    """Yield what programs need of the system: libraries, and no person's files."""
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
    # A system without such filters makes a room all the same, and is said to have none.
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
                # The system limits the processes of an ordinary account, but not root's.
                holds_processes=not is_root() or bool(group.prefix),
                holds_memory=group.holds_memory,
            )
    if "nknown option" in tried:
        return f"bubblewrap is too old ({tried}): version 0.8 or later is needed"
    return (
        f"bubblewrap is installed, but this system does not let it make a closed room ({tried}): "
        "inside a container or virtual environment, ask for user namespaces to be allowed"
    )


def _tried_room(program: str, content: bytes | None) -> str | None:
    """Return None if a small room can be made with a filter, else what bubblewrap says."""
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
        return f"{kind.value} is installed, but does not answer ({problem}): start it first"
    if _try_command([program, "image", "inspect", image]) is not None:
        return (
            f"{kind.value} works, but has no image {image}, and nothing is downloaded unasked: "
            f"fetch it with  {kind.value} pull {image}"
        )
    version = _try_command([program, "--version"], wanted=True) or ""
    number = next((word for word in version.split() if word[:1].isdigit()), "")
    return Isolation(kind, program, number.rstrip(","), image)


def _try_command(
    command: Sequence[str], *, wanted: bool = False, kept_files: Sequence[int] = ()
) -> str | None:
    """Return None if a command succeeds, else why not in one line; if `wanted`, what it prints."""
    answer = answer_of(command, _TRY_SECONDS, kept_files)
    if wanted:
        return None if answer.problem else answer.said.strip()
    if answer.is_good:
        return None
    lines = [line for line in answer.errors.splitlines() if line.strip()]
    return answer.problem or (lines[-1][:200] if lines else f"exit code {answer.code}")
