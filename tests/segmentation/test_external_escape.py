"""Ways out of the closed room, tried from inside by one program that only opens, reads and asks."""

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from errno import EAFNOSUPPORT, EINVAL, ENOSYS, EOPNOTSUPP, EPERM
from pathlib import Path

import pytest

from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.errors import ModelError
from napari_mamamia.segmentation.sandbox import run as external_run
from napari_mamamia.segmentation.sandbox.cgroup import control_group
from napari_mamamia.segmentation.sandbox.external import read_submission
from napari_mamamia.segmentation.sandbox.isolation import (
    Isolation,
    Sandbox,
    bubblewrap_command,
    has_graphics_card,
)
from napari_mamamia.segmentation.sandbox.outputs import take_mask
from napari_mamamia.segmentation.sandbox.sandbox import Ending, Interpreter, lay_out
from napari_mamamia.segmentation.sandbox.seccomp import call_filter, filter_file

sys.path.insert(0, str(Path(__file__).parent))
import foreign
from foreign import run_foreign

PROBE = Path(__file__).with_name("escape_probe.py")
linux = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64's calls")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux"),
    pytest.mark.door,
]


@pytest.fixture(scope="module")
def room():
    """Return bubblewrap; skips with the reason where this system does not let it work."""
    found = foreign.sandbox()
    if isinstance(found, str):
        pytest.skip(found)
    return found


HOST_FILES = """
/etc/passwd /etc/shadow /proc/kcore /proc/keys /proc/kmsg /proc/timer_list
/proc/1/root/etc/passwd /dev/mem /dev/sda /dev/vda /sys/kernel/notes /run/utmp /var/log/dpkg.log
"""


def probed(folder, room, abstract="nobody listens"):
    """Run the probe in a room and return what it found."""
    outside = {
        "abstract": abstract,
        "socket": str(folder / "s"),
        "files": [str(PROBE), f"/proc/{os.getpid()}/environ", *HOST_FILES.split()],
    }
    body = PROBE.read_text() + f"\nimport json\nfound = look(str(out), {outside!r})\n"
    body += '(out / "found.json").write_text(json.dumps(found))\n'
    done = run_foreign(folder, "exec(compile(PROBE, 'probe', 'exec'), {'out': out})", room,
                       before=f"PROBE = {body!r}\n")  # fmt: skip
    assert done.run.ending is Ending.FINISHED, done.log
    return json.loads((done.output / "found.json").read_text())


@pytest.fixture(scope="module")
def found(room, tmp_path_factory):
    """Return what the probe found, while a server outside listens on both kinds of sockets."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))  # a socket's path is short
    name = f"mamamia-escape-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind("\0" + name)
        other.bind(str(folder / "s"))
        one.listen()
        other.listen()
        for address in ("\0" + name, str(folder / "s")):  # both can be reached from here
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(address)
        return probed(folder, room, name)


DEVICES = ("full", "null", "ptmx", "random", "tty", "urandom", "zero")


def test_nothing_of_the_kernel_or_the_system_can_be_opened_for_writing(found):
    allowed = {f"/dev/{name}" for name in DEVICES}
    assert [path for path in found["writable"] if path not in allowed] == []


def test_no_file_of_the_computer_or_of_others_can_be_read(found):
    assert found["readable"] == []


def test_there_are_no_capabilities_and_no_new_ones(found):
    none = "0" * 16
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert found["status"][name] == none
    assert found["status"]["NoNewPrivs"] == "1"
    assert found["status"]["Seccomp"] == "2"
    assert found["status"]["Uid"] == "1000"
    assert found["root"] != "done"


@linux
def test_calls_that_no_submission_needs_are_refused_by_the_filter(found):
    expected = dict.fromkeys(found["calls"], EPERM)
    lacking = "clone3 x32_getpid msgget semget mq_open splice tee vmsplice sendfile inotify_init1"
    lacking += " landlock_create_ruleset seccomp"
    expected.update(dict.fromkeys(lacking.split(), ENOSYS))
    expected.update(fallocate=EOPNOTSUPP, close_range_unshare=EINVAL, own_lock=EINVAL)
    expected.update(own_filter=EINVAL)
    if has_graphics_card():
        expected["memfd_create"] = 0
    assert found["calls"] == expected


def test_only_sockets_of_the_room_itself_can_be_made(found):
    allowed = {name for name, is_open in found["families"].items() if is_open}
    assert allowed == {"unix", "inet"}
    assert not found["abstract"]
    assert not found["socket"]
    assert found["interfaces"] == ["lo"]


def test_no_open_file_and_no_variable_of_the_caller_comes_along(found):
    allowed = ("pipe:", "/dev/null", "/proc/")
    assert [path for path in found["files_open"] if not path.startswith(allowed)] == []
    known = "HOME LANG LOGNAME MPLBACKEND PATH PWD TMPDIR USER OMP_NUM_THREADS MKL_NUM_THREADS"
    assert set(found["variables"]) <= {*known.split(), "CUDA_VISIBLE_DEVICES", "LC_CTYPE"}


def test_devices_cannot_be_made_and_files_outside_not_be_linked(found):
    assert found["node"] == found["block"] == "Operation not permitted"
    assert found["links"] == "Invalid cross-device link"
    assert found["chroot"] == "Operation not permitted"
    cards = ("nvidia", "dxg")
    known = {*DEVICES, "core", "fd", "pts", "shm", "stderr", "stdin", "stdout", "console"}
    assert {name for name in found["devices"] if not name.startswith(cards)} <= known
    assert len(found["other_processes"]) <= 4


@linux
@pytest.mark.parametrize(
    ("left_out", "seen"),
    [
        (
            ("--remount-ro", "/proc"),
            [lambda found: "/proc/1/comm" in found["writable"]],
        ),
        (
            ("--ro-bind", "/dev/null"),
            [lambda found: "/proc/keys" in found["readable"]],
        ),
        (
            ("--seccomp",),
            [
                lambda found: found["calls"]["unshare"] == 0,
                lambda found: found["families"]["netlink"],
            ],
        ),
    ],
    ids=["proc can be written", "kernel files", "filter"],
)
def test_the_probe_sees_a_room_that_lacks_a_wall(
    room, found, tmp_path, monkeypatch, left_out, seen
):
    whole = external_run.bubblewrap_command

    def weaker(*arguments):
        line, words = list(whole(*arguments)), len(left_out)
        for k in reversed(range(len(line))):
            if tuple(line[k : k + words]) == left_out:
                more = {"--seccomp": 2, "--ro-bind": 3}.get(left_out[0], words)
                del line[k : k + more]
        return tuple(line)

    monkeypatch.setattr(external_run, "bubblewrap_command", weaker)
    lacking = probed(tmp_path, room)
    for look in seen:
        assert not look(found)
        assert look(lacking)


def made(folder):
    folder.mkdir()
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps capabilities by default")
def test_the_probe_sees_a_room_that_keeps_its_capabilities(room, tmp_path, monkeypatch):
    whole = external_run.bubblewrap_command

    def weaker(*arguments):
        line = list(whole(*arguments))
        place = line.index("--cap-drop")
        return tuple(line[:place] + line[place + 2 :])

    monkeypatch.setattr(external_run, "bubblewrap_command", weaker)
    assert int(probed(tmp_path, room)["status"]["CapBnd"], 16) != 0


MEMORY_WITHOUT_AN_OWNER = """
import time
for n in range(60):
    with open(f"/tmp/{n}", "wb") as file:
        file.write(bytes(20_000_000))
    time.sleep(0.05)
"""
MANY_SMALL_PROCESSES = """
import os, time
for _ in range(12):
    if os.fork() == 0:
        held = bytearray(b"x") * 40_000_000
        time.sleep(60)
        os._exit(0)
    time.sleep(0.05)
time.sleep(60)
"""


@pytest.mark.parametrize("body", [MEMORY_WITHOUT_AN_OWNER, MANY_SMALL_PROCESSES])
def test_memory_is_counted_wherever_it_hides(room, tmp_path, body):
    done = run_foreign(tmp_path, body, room, memory_bytes=300_000_000)
    assert done.run.ending is Ending.MEMORY
    assert 300_000_000 < done.run.peak_bytes < 1_200_000_000


# a pair: more empty files than any submission needs; big ones where the watcher cannot look
HIDDEN_OUTPUT = {
    "empty files": """
    import time
    for n in range(4000):
        (out / str(n)).touch()
    time.sleep(20)
    """,
    "too deep to look": """
    import os, time
    os.chdir(out)
    for _ in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    open("big", "wb").write(bytes(3_000_000))
    time.sleep(20)
    """,
    "far larger than it is": """
    with open(out / "sparse", "wb") as file:
        file.truncate(10**12)
    """,
}


@pytest.mark.parametrize("name", HIDDEN_OUTPUT)
def test_no_output_hides_from_its_limit(room, tmp_path, name):
    done = run_foreign(tmp_path, HIDDEN_OUTPUT[name], room, output_bytes=20_000_000)
    if name == "far larger than it is":
        assert "File too large" in done.run.reason
    else:
        assert done.run.ending is Ending.OUTPUT


OUTPUTS = {
    "a link to a file of the host": 'os.symlink({secret!r}, masks / "A_1.nii.gz")',
    "a link to a folder of the host": "masks.rmdir(); os.symlink({folder!r}, masks)",
    "a pipe": 'os.mkfifo(masks / "A_1.nii.gz")',
    "a socket": 's = socket.socket(socket.AF_UNIX); os.chdir(masks); s.bind("A_1.nii.gz")',
    "a folder": '(masks / "A_1.nii.gz").mkdir()',
    "a link to a device": 'os.symlink("/dev/zero", masks / "A_1.nii.gz")',
}


def test_what_is_no_plain_file_is_left_where_it_is(room, tmp_path, monkeypatch):
    folder = made(tmp_path / "host")
    secret = folder / "A_1.nii.gz"
    secret.write_bytes(b"patient data")
    body = "import os, socket\n"
    for number, line in enumerate(OUTPUTS.values()):
        body += f"masks = out / '{number}' / 'pred_segmentations'\nmasks.mkdir(parents=True)\n"
        body += line.format(secret=str(secret), folder=str(folder)) + "\n"
    done = run_foreign(tmp_path, body, room)
    assert done.run.ending is Ending.FINISHED, done.log
    opened = []
    monkeypatch.setattr("builtins.open", lambda *words, **more: opened.append(words))
    for number in range(len(OUTPUTS)):
        with pytest.raises(ModelError, match=r"regular file|no folder pred_segmentations"):
            take_mask(done.output / str(number), "A_1", None)
    assert opened == []
    monkeypatch.undo()
    assert secret.read_bytes() == b"patient data"


BOMB = """
count = 0
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
    except OSError as error:
        (out / "count").write_text(f"{count} {error.strerror}")
        break
"""


def test_the_system_itself_limits_the_processes_of_an_ordinary_account(room, tmp_path):
    with tempfile.TemporaryDirectory() as place:  # where an ordinary account gets to
        folder = Path(place)
        foreign.write_submission(folder / "sub", BOMB, before="import os, time\n")
        submission = read_submission(folder / "sub")
        python = Interpreter("/usr/bin/python3", ())
        layout = lay_out(submission, [], Task.SEGMENTATION, folder, python, closed=True)
        parts = Sandbox(layout.readable, layout.output, 10**7, 10**9, 40)
        order = {**json.loads(layout.order), "file_bytes": 10**6, "processes": 40}
        account = {}
        if os.geteuid() == 0:  # the system limits no processes of root
            account = {"user": 65534, "group": 65534, "extra_groups": []}
            folder.chmod(0o755)
            os.chown(layout.output[0], 65534, 65534)
        with filter_file(call_filter()) as number:
            line = bubblewrap_command(room.program, parts, layout.command, number)
            pipe = subprocess.PIPE
            with subprocess.Popen(
                line, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=(number,), cwd="/", **account
            ) as process:
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
                assert b"finished" in process.stdout.read(), process.stderr.read()
        count, _, why = (layout.output[0] / "count").read_text().partition(" ")
    assert 20 < int(count) <= 40
    assert why == "Resource temporarily unavailable"


def test_the_system_holds_the_processes_of_root_too_where_it_has_control_groups(
    room, tmp_path, monkeypatch
):
    """Nobody looks here: an endless bomb of root once outran the look."""
    monkeypatch.setattr("napari_mamamia.segmentation.sandbox.run.can_watch", lambda: False)
    before = groups()
    done = run_foreign(tmp_path, f"import os, time\n{BOMB}", room, processes=40)
    told = done.output / "count"
    assert ("by looking only" in room.text) != room.holds_processes
    if os.geteuid() == 0:  # an ordinary account: the test above
        assert told.exists() == room.holds_processes
        count, _, why = told.read_text().partition(" ") if told.exists() else ("40", "", "")
        assert 20 < int(count) <= 40 + 32
        assert why == ("Resource temporarily unavailable" if told.exists() else "")
    assert groups() == before


def fake_groups(tmp_path, monkeypatch, own="0::/user/mine", controllers=("memory", "pids")):
    """Return a folder like that of control groups of version 2; mkdir makes a group's files."""
    group = tmp_path / "cgroup"
    (group / "user" / "mine").mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory pids")
    for folder, content in (
        (group, ""),
        (group / "user", "memory pids"),
        (group / "user/mine", ""),
    ):
        (folder / "cgroup.subtree_control").write_text(content)
        (folder / "cgroup.procs").touch()
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{own}\n")
    monkeypatch.setattr("napari_mamamia.segmentation.sandbox.cgroup._ROOT", group)
    monkeypatch.setattr("napari_mamamia.segmentation.sandbox.cgroup._OWN", tmp_path / "own")
    make, remove = Path.mkdir, Path.rmdir
    files = ["cgroup.procs", *(f"{name}.max" for name in controllers)]
    files += ["memory.swap.max", "memory.oom.group", "memory.events"]

    def make_group(folder, *words, **more):
        make(folder, *words, **more)
        for name in files if folder.name.startswith("mamamia-") else ():
            (folder / name).touch()

    def remove_group(folder):
        for name in files if folder.name.startswith("mamamia-") else ():
            (folder / name).unlink(missing_ok=True)
        remove(folder)

    monkeypatch.setattr(Path, "mkdir", make_group)
    monkeypatch.setattr(Path, "rmdir", remove_group)
    return group


def test_a_group_of_version_2_holds_memory_and_processes_beside_ones_own(tmp_path, monkeypatch):
    """Written after cgroups(7); no computer of ours has a group of version 2 to be had."""
    folder = fake_groups(tmp_path, monkeypatch)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with control_group(40, 400_000_000) as group:
        assert group.folder.parent == folder / "user"  # the nearest that hands memory on
        assert group.holds_memory
        files = {path.name: path.read_text() for path in group.folder.iterdir()}
        assert files["memory.max"] == "400000000"
        assert files["memory.swap.max"] == "0"
        assert files["memory.oom.group"] == "1"
        assert files["pids.max"] == str(40 + 32)
        assert subprocess.run([*group.prefix, "/bin/echo", "in it"], check=True,
                              capture_output=True).stdout == b"in it\n"  # fmt: skip
        assert (group.folder / "cgroup.procs").read_text() == "0\n"
        assert not group.is_out_of_memory()
        (group.folder / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n")
        assert group.is_out_of_memory()
    assert list(folder.glob("**/mamamia-*")) == []


def test_a_program_that_the_system_ended_for_memory_went_over_its_limit(
    room, tmp_path, monkeypatch
):
    fake_groups(tmp_path, monkeypatch)
    events = "oom 1\noom_kill 1\n"
    make = external_run.control_group

    @contextmanager
    def group_that_ran_out(*limits):
        with make(*limits) as group:
            (group.folder / "memory.events").write_text(events)
            yield group

    monkeypatch.setattr(external_run, "control_group", group_that_ran_out)
    done = run_foreign(tmp_path, "import os; os._exit(9)", room)
    assert done.run.ending is Ending.MEMORY
    events = "oom 0\noom_kill 0\n"
    (tmp_path / "again").mkdir()
    assert run_foreign(tmp_path / "again", "import os; os._exit(9)", room).run.ending is Ending.DIED


@pytest.mark.parametrize("why", ["no memory is handed on", "no group can be made", "none of ours"])
def test_without_a_group_nothing_stands_before_the_command(tmp_path, monkeypatch, why):
    folder = fake_groups(
        tmp_path, monkeypatch, own="" if why == "none of ours" else "0::/user/mine"
    )
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    if why == "no memory is handed on":
        (folder / "user/cgroup.subtree_control").write_text("pids")
    if why == "no group can be made":
        (folder / "user").rename(folder / "theirs")
    with control_group(40, 400_000_000) as group:
        assert group.prefix == ()
        assert not group.holds_memory
        assert not group.is_out_of_memory()


def test_a_group_that_no_process_may_enter_is_not_used(tmp_path, monkeypatch):
    folder = fake_groups(tmp_path, monkeypatch)
    monkeypatch.setattr(
        "napari_mamamia.segmentation.sandbox.cgroup._ENTER", 'false "$0" && exec "$@"'
    )
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with control_group(40, 400_000_000) as group:
        assert group.prefix == ()
    assert list(folder.glob("**/mamamia-*")) == []


def test_a_group_that_a_killed_process_left_goes_with_the_next_and_one_in_use_stays(
    tmp_path, monkeypatch
):
    for name in ("cgroup.procs", "mamamia-999999999-aa/x", f"mamamia-{os.getpid()}-bb/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr("napari_mamamia.segmentation.sandbox.cgroup._ROOT", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with control_group(5, 10**9) as group:
        assert group.prefix == ()  # no controller of processes here
    assert {one.name for one in tmp_path.glob("mamamia-*")} == {f"mamamia-{os.getpid()}-bb"}


def groups():
    """Return the groups of this process: other tests may run rooms at the same time."""
    name = f"mamamia-{os.getpid()}-*"
    return {one for place in ("", "pids/") for one in Path("/sys/fs/cgroup").glob(place + name)}


def test_an_unknown_processor_has_no_filter_and_the_provenance_says_so():
    assert call_filter("riscv64") is None
    kind = IsolationKind.BUBBLEWRAP
    assert (
        Isolation(kind, "bwrap", "1").text == "isolated by bubblewrap 1, system calls not filtered"
    )
    assert Isolation(kind, "bwrap", "1", has_filter=True).text.endswith(", system calls filtered")
    watched = Isolation(kind, "bwrap", "1", has_filter=True, holds_processes=False)
    assert watched.text.endswith(", processes counted by us only")
    counted = Isolation(kind, "bwrap", "1", has_filter=True, holds_memory=True)
    assert counted.text.endswith(", memory counted by the kernel")


def run_filter(content, architecture, number, first=0, second=0, third=0):
    """Return what a filter answers, by an interpreter of these few instructions of BPF."""
    import struct

    data = {0: number, 4: architecture, 16: first, 24: second, 32: third}
    steps = list(struct.iter_unpack("=HBBI", content))
    place, loaded = 0, 0
    while True:
        code, then, otherwise, value = steps[place]
        place += 1
        if code == 0x20:
            loaded = data[value]
        elif code == 0x06:
            return value
        else:
            true = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += then if true else otherwise


ALLOW, REFUSED, MISSING = 0x7FFF0000, 0x50000 | EPERM, 0x50000 | ENOSYS
X86, ARM = 0xC000003E, 0xC00000B7


@pytest.mark.parametrize(
    ("machine", "audit", "number", "first", "second", "expected"),
    [
        ("x86_64", X86, 0, 0, 0, ALLOW),  # read
        ("x86_64", X86, 101, 0, 0, REFUSED),  # ptrace
        ("x86_64", ARM, 0, 0, 0, MISSING),
        ("x86_64", 0x40000003, 4, 0, 0, MISSING),  # a program of 32 bits
        ("x86_64", X86, 0x40000000, 0, 0, MISSING),  # x32
        ("x86_64", X86, 56, 0x01200011, 0, ALLOW),  # clone, as fork does it
        ("x86_64", X86, 56, 0x10000011, 0, REFUSED),  # clone with a new user namespace
        ("x86_64", X86, 41, 2, 0, ALLOW),  # socket
        ("x86_64", X86, 41, 40, 0, 0x50000 | EAFNOSUPPORT),  # AF_VSOCK
        ("x86_64", X86, 135, 0xFFFFFFFF, 0, ALLOW),  # personality, asked for
        ("x86_64", X86, 135, 0x40000, 0, REFUSED),  # no random addresses
        ("x86_64", X86, 16, 1, 0x5401, ALLOW),  # ioctl
        ("x86_64", X86, 16, 1, 0x5412, REFUSED),  # types into the terminal
        ("x86_64", X86, 56, 0x3D0F00, 0, ALLOW),  # clone, as threads are made
        ("x86_64", X86, 56, 0x3D0B00, 0, REFUSED),  # a thread with open files of its own
        ("x86_64", X86, 72, 1, 1, ALLOW),  # fcntl F_GETFD
        ("x86_64", X86, 72, 1, 1031, REFUSED),  # F_SETPIPE_SZ
        ("x86_64", X86, 72, 1, 38, 0x50000 | EINVAL),  # F_OFD_SETLKW
        ("x86_64", X86, 157, 15, 0, ALLOW),  # prctl PR_SET_NAME
        ("x86_64", X86, 157, 4, 0, REFUSED),  # PR_SET_DUMPABLE
        ("x86_64", X86, 40, 0, 0, MISSING),  # sendfile
        ("aarch64", ARM, 71, 0, 0, MISSING),  # sendfile
        ("aarch64", ARM, 186, 0, 0, MISSING),  # msgget
        ("aarch64", ARM, 40, 0, 0, REFUSED),  # mount, sendfile elsewhere
        ("aarch64", ARM, 25, 1, 1031, REFUSED),
        ("aarch64", ARM, 63, 0, 0, ALLOW),  # read
        ("aarch64", ARM, 117, 0, 0, REFUSED),  # ptrace
        ("aarch64", ARM, 101, 0, 0, ALLOW),  # nanosleep, ptrace elsewhere
        ("aarch64", ARM, 220, 0x10000011, 0, REFUSED),
        ("aarch64", X86, 63, 0, 0, MISSING),
    ],
)
def test_the_filter_answers_each_call(machine, audit, number, first, second, expected):
    assert run_filter(call_filter(machine), audit, number, first, second) == expected


@pytest.mark.parametrize(
    ("number", "second", "third", "expected"),
    [
        (54, 1, 7, REFUSED),  # SO_SNDBUF
        (54, 1, 8, REFUSED),  # SO_RCVBUF
        (54, 1, 60, REFUSED),  # SO_ZEROCOPY
        (54, 1, 2, ALLOW),  # SO_REUSEADDR
        (54, 6, 7, ALLOW),  # TCP_SYNCNT
        (436, 0, 4, ALLOW),  # close_range with CLOSE_RANGE_CLOEXEC
        (436, 0, 2, 0x50000 | EINVAL),  # CLOSE_RANGE_UNSHARE
    ],
)
def test_the_filter_looks_at_the_third_argument(number, second, third, expected):
    assert run_filter(call_filter("x86_64"), X86, number, 0, second, third) == expected


def test_a_call_is_let_through_where_a_card_may_need_it():
    number = 319  # memfd_create
    assert run_filter(call_filter("x86_64"), X86, number) == REFUSED
    assert run_filter(call_filter("x86_64", ("memfd_create",)), X86, number) == ALLOW
