"""What the kernel holds for a foreign program, and files without a name, count: each way tried.

Every program is small and bounded: it stops by itself at some hundred MB, or is ended before.
"""

import sys
import textwrap
from pathlib import Path

import pytest

from napari_mamamia.segmentation.sandbox import run, seccomp, watch
from napari_mamamia.segmentation.sandbox.sandbox import Ending
from napari_mamamia.segmentation.sandbox.watch import RESOURCES, Hold

sys.path.insert(0, str(Path(__file__).parent))
import foreign
from foreign import run_foreign

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux"),
    pytest.mark.door,
]
LIMIT = 130_000_000


@pytest.fixture(scope="module")
def room():
    """Return bubblewrap; skips with the reason where this system does not let it work."""
    found = foreign.sandbox()
    if isinstance(found, str):
        pytest.skip(found)
    return found


# each holds some 400 to 600 MB, were it not ended; then it waits, so that it is looked at
HELD = {
    "unix streams": """
    for _ in range(1500):
        pair = socket.socketpair()
        pair[0].setblocking(False)
        try:
            while True: pair[0].send(bytes(65536))
        except BlockingIOError: kept.append(pair)
    """,
    "unix datagrams": """
    for _ in range(2000):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        pair[0].setblocking(False)
        try:
            while True: pair[0].send(bytes(60000))
        except OSError: kept.append(pair[1])
        pair[0].close()
    """,
    "sockets in transit": """
    for _ in range(20):
        post = socket.socketpair()
        kept.append(post)
        for _ in range(60):
            pair = socket.socketpair()
            pair[0].setblocking(False)
            try:
                while True: pair[0].send(bytes(65536))
            except BlockingIOError: pass
            socket.send_fds(post[0], [b"x"], [pair[1].fileno()])
            for end in pair: end.close()
    """,
    "TCP": """
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(60):
            pair = socket.create_connection(server.getsockname()), server.accept()[0]
            pair[0].setblocking(False)
            try:
                while True: pair[0].send(bytes(10**6))
            except BlockingIOError: kept.append(pair)
    """,
    "TCP in an unanswered queue": """
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        kept.append(server)
        for _ in range(60):
            one = socket.create_connection(server.getsockname())
            one.setblocking(False)
            try:
                while True: one.send(bytes(10**6))
            except BlockingIOError: kept.append(one)
        time.sleep(3)
    """,
    "UDP": """
    for _ in range(1500):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("127.0.0.1", 0))
        for _ in range(8): one.sendto(bytes(60000), one.getsockname())
        kept.append(one)
    """,
    "page tables": """
    # one page of each 2 MiB takes a page of tables
    for _ in range(6):
        area = mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
        kept.append(area)
        for place in range(0, 2**36, 2**21): area[place]
    """,
    "pipes": """
    for _ in range(3800):
        ends = os.pipe()
        os.set_blocking(ends[1], False)
        try:
            while True: os.write(ends[1], bytes(65536))
        except BlockingIOError: kept.append(ends)
    """,
    "terminals": """
    import pty
    for _ in range(3000):
        ends = pty.openpty()
        os.set_blocking(ends[1], False)
        try:
            while True: os.write(ends[1], bytes(4096))
        except OSError: kept.append(ends)
    """,
    "shared memory whose pages are not mapped": """
    area = mmap.mmap(-1, 500_000_000)
    for place in range(0, 499_000_000, 10 * 2**20):
        area[place : place + 10 * 2**20 - 4096] = bytes(10 * 2**20 - 4096)
        area.madvise(mmap.MADV_DONTNEED)
    """,
    "empty files in memory": """
    for n in range(200_000): os.close(os.open(f"/tmp/{n}", os.O_CREAT))
    """,
    "files in memory without a name": """
    for n in range(50):
        kept.append(open("/tmp/x", "wb"))
        kept[-1].write(bytes(10_000_000))
        kept[-1].flush()
        os.unlink("/tmp/x")
    """,
    "mappings": """
    for _ in range(5):
        if os.fork() == 0:
            area = libc.mmap(None, 65000 * 4096, 1, 0x4022, -1, 0)
            for n in range(0, 65000, 2): libc.mprotect(ctypes.c_void_p(area + n * 4096), 4096, 3)
            time.sleep(60)
            os._exit(0)
    """,
    "threads": """
    import threading
    threading.stack_size(65536)
    for _ in range(8000):
        try: threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        except RuntimeError: break
    """,
    "a process whose first thread has ended": """
    import threading
    if os.fork() == 0:
        def hold():
            time.sleep(0.5)
            kept.append(bytearray(b"x") * 400_000_000)
            time.sleep(60)
        threading.Thread(target=hold).start()
        libc.syscall(60, 0)
    """,
}
BEFORE = """
import ctypes, mmap, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
kept = []
"""
WAIT = "\ntime.sleep(20)\n"
BY_DAY = {
    *("unix streams", "TCP", "page tables", "shared memory whose pages are not mapped"),
    *("a process whose first thread has ended", "removed", "mapped and closed", "in transit"),
}


def each(names):
    """Return the names as parameters; what is not for each commit is for the night."""
    return [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.night) for name in names]


@pytest.mark.parametrize("name", each(HELD))
def test_what_the_kernel_holds_counts_as_memory(room, tmp_path, name):
    body = textwrap.dedent(HELD[name]) + WAIT
    done = run_foreign(tmp_path, body, room, before=BEFORE, memory_bytes=LIMIT, processes=10_000)
    assert done.run.ending is Ending.MEMORY, done.log
    assert done.run.peak_bytes > LIMIT


MEMFD = """
file = os.memfd_create("x")
for _ in range(40): os.write(file, bytes(10**7))
"""


def test_memory_files_count_where_a_graphics_card_needs_them(room, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "has_graphics_card", lambda: True)
    done = run_foreign(tmp_path, MEMFD + WAIT, room, before=BEFORE, memory_bytes=LIMIT)
    assert done.run.ending is Ending.MEMORY, done.log


MANY = {
    "handles": """
    for _ in range(3):
        if os.fork() == 0:
            for _ in range(2000): os.open("/dev/null", os.O_RDONLY)
            time.sleep(60)
            os._exit(0)
    """,
    "watches of epoll": """
    import select
    ends = [os.pipe()[1] for _ in range(500)]
    for _ in range(20):
        kept.append(select.epoll())
        for end in ends: kept[-1].register(end)
    """,
    "file locks": """
    import fcntl
    for n in range(20):
        kept.append(open(f"/tmp/{n}", "w"))
        for n in range(400, 0, -1): fcntl.lockf(kept[-1], fcntl.LOCK_EX, 1, 2 * n)
    """,
}


@pytest.mark.parametrize("name", MANY)
def test_handles_and_locks_have_a_limit_of_their_own(room, tmp_path, name):
    body = textwrap.dedent(MANY[name]) + WAIT
    done = run_foreign(tmp_path, body, room, before=BEFORE, handles=5000)
    assert done.run.ending is Ending.HANDLES, done.log
    assert "at most 5000 open files" in done.run.reason


ENDED = """
for _ in range(300):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: break
time.sleep(20)
"""


def test_processes_that_ended_count_until_somebody_asks_for_them(room, tmp_path):
    done = run_foreign(tmp_path, ENDED, room, before=BEFORE, processes=60)
    assert done.run.ending is Ending.PROCESSES, done.log


MAPPED = """
file = (out / "x").open("w+b")
for _ in range(60): file.write(bytes(10**6))
file.flush()
kept.append(libc.mmap(None, 4096, 1, 1, file.fileno(), 0))
file.close()
(out / "x").unlink()
(out / "y").write_bytes(bytes(30 * 10**6))
time.sleep(3)
"""


LOSES_ITS_NAME = """
kept.append((out / "x").open("wb"))
for _ in range(60): kept[-1].write(bytes(10**6))
time.sleep(2.5)
(out / "x").unlink()
time.sleep(1)
"""


@pytest.mark.parametrize("body", [MAPPED, LOSES_ITS_NAME], ids=["mapped", "loses its name"])
def test_a_file_without_a_name_within_the_limit_ends_nothing(room, tmp_path, body):
    done = run_foreign(tmp_path, body, room, before=BEFORE, output_bytes=100_000_000)
    assert done.run.ending is Ending.FINISHED, done.run.reason


# each keeps 300 MB of the disk without a name, were it not ended
NAMELESS = {
    "removed": """
    for n in range(6):
        kept.append((out / "x").open("wb"))
        (out / "x").unlink()
        for _ in range(50): kept[-1].write(bytes(10**6))
    """,
    "never named": """
    for n in range(6):
        kept.append(os.open(out, os.O_TMPFILE | os.O_RDWR))
        for _ in range(50): os.write(kept[-1], bytes(10**6))
    """,
    "replaced": """
    for n in range(6):
        (out / "x").write_bytes(bytes(50 * 10**6))
        kept.append((out / "x").open())
        (out / "y").touch()
        (out / "y").replace(out / "x")
    """,
    "mapped and closed": """
    for n in range(6):
        file = (out / "x").open("w+b")
        for _ in range(50): file.write(bytes(10**6))
        file.flush()
        kept.append(libc.mmap(None, 4096, 1, 1, file.fileno(), 0))
        file.close()
        (out / "x").unlink()
    """,
    "in transit": """
    for n in range(6):
        with (out / "x").open("wb") as file:
            for _ in range(50): file.write(bytes(10**6))
            kept.append(socket.socketpair())
            socket.send_fds(kept[-1][0], [b"x"], [file.fileno()])
        (out / "x").unlink()
    """,
    "reserved": """
    for n in range(6):
        kept.append((out / "x").open("wb"))
        (out / "x").unlink()
        os.posix_fallocate(kept[-1].fileno(), 0, 50 * 10**6)
    """,
    "of several processes": """
    for n in range(6):
        if os.fork() == 0:
            file = (out / str(n)).open("wb")
            (out / str(n)).unlink()
            for _ in range(50): file.write(bytes(10**6))
            time.sleep(60)
            os._exit(0)
    """,
}


@pytest.mark.parametrize("name", each(NAMELESS))
def test_files_without_a_name_count_as_output(room, tmp_path, name):
    body = textwrap.dedent(NAMELESS[name]) + WAIT
    done = run_foreign(tmp_path, body, room, before=BEFORE, output_bytes=100_000_000)
    assert done.run.ending is Ending.OUTPUT, done.log
    assert done.run.seconds < 10


def test_each_call_that_is_denied_for_a_resource_is_in_the_filter():
    refused = {*f"{seccomp._FORBIDDEN},{seccomp._LACKING}".replace(",", " ").split(), "fallocate"}
    denied = [resource for resource in RESOURCES if resource.hold is Hold.DENIED]
    assert {call for resource in RESOURCES for call in resource.calls} <= refused
    assert all(resource.calls for resource in denied)


def test_the_page_on_security_lists_every_resource():
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    rows = [f"| {resource.name} | {resource.hold} | {resource.how} |" for resource in RESOURCES]
    assert "\n".join(rows) in page


USUAL = """
import asyncio, multiprocessing, shutil, sqlite3, subprocess, tempfile, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

(out / "a").write_bytes(b"x" * 10**6)
shutil.copyfile(out / "a", out / "b")  # sendfile, where there is
shutil.copytree(out, "/tmp/all")
assert (out / "b").read_bytes() == (out / "a").read_bytes()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
memory = shared_memory.SharedMemory(create=True, size=10**6)
memory.close(); memory.unlink()
asyncio.run(asyncio.sleep(0))
base = sqlite3.connect(str(out / "base"))
base.execute("create table t (n)"); base.commit(); base.close()
assert subprocess.run(["cat", out / "a"], capture_output=True, check=True).stdout == b"x" * 10**6
with tempfile.TemporaryFile(dir=out) as file: file.write(bytes(10**6))
area = mmap.mmap(-1, 10**6)
with socket.create_server(("127.0.0.1", 0)) as server:
    one = socket.create_connection(server.getsockname())
    two = server.accept()[0]
    one.sendall(b"x")
    assert two.recv(1) == b"x"
os.posix_fallocate(os.open(out / "c", os.O_CREAT | os.O_RDWR), 0, 1000)
thread = threading.Thread(target=print); thread.start(); thread.join()
"""


def test_what_usual_programs_do_goes_on(room, tmp_path):
    done = run_foreign(tmp_path, USUAL, room, before=BEFORE, memory_bytes=500_000_000)
    assert done.run.ending is Ending.FINISHED, done.log
    assert done.run.peak_bytes < 300_000_000


def fake_process(proc, pid, parent, status, state="S", threads=1):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    fields = [state, str(parent), *["0"] * 15, str(threads)]
    (folder / "stat").write_text(f"{pid} (a) b) {' '.join(fields)}\n")
    (folder / "status").write_text("Name:\tx\n" + "".join(f"{line}\n" for line in status))


def test_swap_huge_pages_and_page_tables_are_summed_over_the_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "_PROC", tmp_path)
    sizes = ["VmRSS:\t 100 kB", "RssShmem:\t 40 kB", "VmSwap:\t 30 kB", "VmPTE:\t 8 kB"]
    fake_process(tmp_path, 10, 1, [*sizes, "HugetlbPages:\t 2048 kB", "Threads:\t3"])
    fake_process(tmp_path, 11, 10, [*sizes, "HugetlbPages:\t 0 kB", "Threads:\t1"])
    fake_process(tmp_path, 12, 11, ["Threads:\t1"], state="Z")  # ended
    fake_process(tmp_path, 13, 10, ["Threads:\t2"], state="Z", threads=2)  # its first thread has
    (tmp_path / "13/task/14").mkdir(parents=True)
    (tmp_path / "13/task/14/status").write_text("\n".join([*sizes, "Threads:\t2"]))
    fake_process(tmp_path, 20, 1, sizes)  # another program
    use = watch.tree_use(10)
    assert sorted(use.members) == [10, 11, 13]
    assert use.processes == 4
    assert use.held_bytes == {
        "resident memory": (3 * 130 + 2048) * 1024,
        "page tables": 3 * 8 * 1024,
        "threads": 6 * 32 * 1024,
    }
    assert use.shared_bytes == 3 * 40 * 1024


SOCKSTAT = "sockets: used 7\nTCP: inuse 3 orphan 0 tw 0 alloc 9 mem 0\n"
PROTOCOLS = "protocol size sockets\nUNIX-STREAM 1152 2\nUNIX 1152 1\nTCP 2368 3\n"
TCP = """ sl local rem st tx_queue:rx_queue
0: 0100007F:1 00000000:0 0A 00000000:00000000 00:0
1: 0100007F:1 0100007F:2 01 00000000:00000010 00:0
2: 0100007F:2 0100007F:1 01 00000010:00000000 00:0
3: 0100007F:3 0100007F:1 06 00000000:00000000 00:0
"""


def test_sockets_count_by_the_buffers_of_this_computer(tmp_path, monkeypatch):
    """Of 7 sockets 3 are unix ones, and 1 of TCP is idle: 3 may be full."""
    monkeypatch.setattr(watch, "_PROC", tmp_path)
    sizes = {"core/wmem_default": "1000", "ipv4/tcp_rmem": "1 2 60000", "ipv4/tcp_wmem": "1 2 4000"}
    for name, text in sizes.items():
        (tmp_path / "sys/net" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/net" / name).write_text(f"{text}\n")
    for place in ("10", "self"):
        (tmp_path / place / "ns").mkdir(parents=True)
        (tmp_path / place / "ns" / "net").touch()
    net = tmp_path / "10" / "net"
    net.mkdir()
    for name, text in {"sockstat": SOCKSTAT, "protocols": PROTOCOLS, "tcp": TCP}.items():
        (net / name).write_text(text)
    assert watch._socket_bytes(net) == 3 * 2 * 1000 + 3 * 64000
    (tmp_path / "10/ns/net").unlink()
    (tmp_path / "10/ns/net").hardlink_to(tmp_path / "self/ns/net")
    assert watch._socket_bytes(net) == 0  # the computer's own network: others' sockets too
