"""A PACS that drips, never ends or lies: each transfer stops with the reason and leaves nothing."""

import gzip
import importlib.util
import json
import socket
import threading
import zlib
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from tests.cli.warm_program import mamamia
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.errors import PacsError

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("dicomweb_client")

from napari_mamamia.io.pacs.limits import Pace, TransferLimits  # noqa: E402
from napari_mamamia.io.pacs.web import fetch_study, find_studies_on, store_files  # noqa: E402

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

LIMITS = TransferLimits(
    list_bytes=1 << 16, image_bytes=1 << 20, study_bytes=1 << 21, n_images=40, n_studies=10
)
HASTY = replace(LIMITS, idle_s=0.3, grace_s=0.3, bytes_per_s=1e6)
"""A transfer that is slow, whatever the reason, is stopped within a third of a second."""

JSON = b"Content-Type: application/dicom+json\r\n"
PARTS = b'Content-Type: multipart/related; type="application/dicom"; boundary=cut\r\n'
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
HEAD = b"--cut\r\nContent-Type: application/dicom\r\n\r\n"
TAIL = b"\r\n--cut--"


class Rogue:
    """A server that answers a request by `behave(address, send)`, then hangs up."""

    def __init__(self, behave):
        self.behave = behave
        self.ends = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/dicom-web"
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()

    def serve(self):
        while not self.ends.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.answer, args=(connection,)))
            self.threads[-1].start()

    def answer(self, connection):
        with connection, suppress(OSError):
            address = self.address(connection)
            self.behave(address, connection.sendall, self.ends)

    @staticmethod
    def address(connection):
        head = b""
        while b"\r\n\r\n" not in head and (piece := connection.recv(1 << 12)):
            head += piece
        return head.split(b" ")[1].decode() if head else ""

    def close(self):
        self.ends.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def rogue():
    made = []

    def start(behave):
        made.append(Rogue(behave))
        return made[-1].url

    yield start
    for server in made:
        server.close()


def whole(content, kind=JSON):
    return OK + kind + f"Content-Length: {len(content)}\r\n\r\n".encode() + content


def entries(*uids):
    return [
        {"0020000E": {"vr": "UI", "Value": ["2.25.8"]}, "00080018": {"vr": "UI", "Value": [uid]}}
        for uid in uids
    ]


def drip(send, ends, text):
    for byte in text:
        if ends.wait(0.01):
            return
        send(bytes([byte]))


def drip_body(_, send, ends):
    send(OK + JSON + b"\r\n")
    drip(send, ends, b"[" + b" " * 10_000)


def drip_headers(_, send, ends):
    send(OK)
    drip(send, ends, b"X-Slow: " + b"a" * 10_000)


def drip_continues(_, send, ends):
    while not ends.wait(0.001):
        send(b"HTTP/1.1 100 Continue\r\n\r\n")


def say_nothing(_, send, ends):
    ends.wait(5)


def endless_list(_, send, ends):
    send(OK + JSON + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n[\r\n")
    entry = json.dumps(entries("2.25.3")[0]).encode() + b","
    while not ends.is_set():
        send(f"{len(entry):x}\r\n".encode() + entry + b"\r\n")


def bomb(_, send, ends):
    packed = gzip.compress(b"[" + b" " * (1 << 22))
    assert len(packed) < LIMITS.list_bytes
    send(whole(packed, JSON + b"Content-Encoding: gzip\r\n"))


def odd_packing(_, send, ends):
    send(whole(b"[]", JSON + b"Content-Encoding: br\r\n"))


def huge_promise(_, send, ends):
    send(OK + JSON + b"Content-Length: 999999999999\r\n\r\n[")
    ends.wait(5)


def broken_promise(_, send, ends):
    send(OK + JSON + b"Content-Length: 500\r\n\r\n[]")


def round_and_round(address, send, ends):
    send(
        b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: "
        + address.encode()
        + b"x\r\nContent-Length: 0\r\n\r\n"
    )


SLOW = r"the transfer took 0\.\d+ s for \d+ bytes and was stopped"


@pytest.mark.parametrize(
    ("behave", "limits", "reason"),
    [
        (drip_body, HASTY, SLOW),
        (drip_headers, HASTY, SLOW),
        (drip_continues, HASTY, SLOW),
        (say_nothing, replace(HASTY, grace_s=60), r"no data arrived for 0\.3 s"),
        (endless_list, LIMITS, r"the server sends more than 0\.0625 MiB"),
        (bomb, LIMITS, r"the server sends more than 0\.0625 MiB"),
        (
            odd_packing,
            LIMITS,
            ("the server compresses its response as 'br', which was not requested"),
        ),
        (huge_promise, LIMITS, r"the server sends more than 0\.0625 MiB"),
        (broken_promise, LIMITS, r"2 bytes read, 498 more expected"),
        (round_and_round, LIMITS, "Exceeded 5 redirects"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_list_that_does_not_come_to_its_end_is_stopped_with_the_reason(
    rogue, tmp_path, behave, limits, reason
):
    url = rogue(behave)
    expected = rf"expected a response from the PACS at {url}, but .*{reason}.*nothing was changed"
    with pytest.raises(PacsError, match=expected):
        find_studies_on(url, limits=limits)
    with pytest.raises(PacsError, match=expected):
        fetch_study(url, "2.25.1", tmp_path / "in", limits=limits)
    assert not list(tmp_path.rglob("*"))


def test_pages_without_end_are_stopped_at_the_most_images_of_a_study(rogue, tmp_path):
    numbers = count()

    def another_page(_, send, ends):
        send(whole(json.dumps(entries(*(f"2.25.{next(numbers)}" for _ in range(9)))).encode()))

    with pytest.raises(PacsError, match="the server lists more than 40 images of one study"):
        fetch_study(rogue(another_page), "2.25.1", tmp_path / "in", limits=LIMITS)
    assert next(numbers) == 45
    assert not list(tmp_path.rglob("*"))


def test_a_list_longer_than_asked_for_is_cut_and_said_to_be(rogue):
    listed = [{"0020000D": {"Value": [f"2.25.{k}"]}} for k in range(60)]

    def long_list(_, send, ends):
        send(whole(json.dumps(listed).encode()))

    found = find_studies_on(rogue(long_list), limits=LIMITS)
    assert (len(found.studies), found.has_more) == (10, True)


# ---- one image of a list of two


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    phantoms.write_exam(folder)
    return [file.read_bytes() for file in sorted(folder.iterdir())[:2]]


def uid_of(image):
    return str(pydicom.dcmread(pydicom.filebase.DicomBytesIO(image)).SOPInstanceUID)


def second_image(images, answer):
    """Behave well up to the second image."""
    uids = [uid_of(image) for image in images]

    def behave(address, send, ends):
        if address.split("?")[0].endswith("/instances"):
            send(whole(json.dumps(entries(*uids)).encode()))
        elif address.endswith(uids[0]):
            send(whole(HEAD + images[0] + TAIL, PARTS))
        else:
            answer(images[1], send, ends)

    return behave


def drip_image(image, send, ends):
    send(OK + PARTS + b"\r\n" + HEAD)
    drip(send, ends, image)


def image_without_end(image, send, ends):
    send(OK + PARTS + b"\r\n" + HEAD + image)


def half_image_with_end(image, send, ends):
    send(OK + PARTS + b"\r\n" + HEAD + image[: len(image) // 2] + b"\r\n--cut")


def endless_image(image, send, ends):
    send(OK + PARTS + b"\r\n" + HEAD)
    while not ends.is_set():
        send(bytes(1 << 14))


def short_promise(image, send, ends):
    body = HEAD + image + TAIL
    send(OK + PARTS + f"Content-Length: {len(body) - 200}\r\n\r\n".encode() + body)


def packed_image(image, send, ends):
    packed = gzip.compress(HEAD + image + bytes(1 << 21) + TAIL)
    send(whole(packed, PARTS + b"Content-Encoding: gzip\r\n"))


def two_images(image, send, ends):
    send(whole(HEAD + image + b"\r\n" + HEAD + image + TAIL, PARTS))


def a_page(image, send, ends):
    send(whole(b"<html>", b"Content-Type: text/html\r\n"))


def no_dicom(image, send, ends):
    send(whole(HEAD + b"text" + TAIL, PARTS))


def deflated_bomb(image, send, ends):
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.DeflatedExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.3", "2.25.9"
    out = pydicom.filebase.DicomBytesIO()
    out.write(bytes(128) + b"DICM")
    pydicom.filewriter.write_file_meta_info(out, meta)
    squeeze = zlib.compressobj(9, wbits=-15)
    packed = squeeze.compress(bytes(200 << 20)) + squeeze.flush()
    send(whole(HEAD + out.getvalue() + packed + TAIL, PARTS))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (drip_image, "and was stopped: 1 of 2 images are in"),
        (image_without_end, "not one complete image: 1 of 2 images are in"),
        (half_image_with_end, "not one complete image"),
        (endless_image, "the server sends more than 1 MiB: 1 of 2"),
        (short_promise, "not one complete image"),
        (packed_image, "the server sends more than 1 MiB"),
        (two_images, "not one complete image"),
        (a_page, "the server sent 'text/html' instead of an image"),
        (no_dicom, r"no readable image \(the first bytes are not those of a DICOM file\): 1 of 2"),
        (deflated_bomb, r"no readable image \(the file inflates to more than"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_image_that_does_not_come_whole_leaves_those_before_it_and_no_other_file(
    rogue, images, tmp_path, answer, reason
):
    url = rogue(second_image(images, answer))
    limits = replace(LIMITS, grace_s=2, bytes_per_s=1e6) if answer is drip_image else LIMITS
    with pytest.raises(PacsError, match=reason):
        fetch_study(url, "2.25.1", tmp_path / "in", limits=limits)
    (kept,) = [path for path in tmp_path.rglob("*") if not path.is_dir()]
    assert kept.read_bytes() == images[0]


def test_a_study_larger_than_its_limit_is_stopped(rogue, images, tmp_path):
    def well(image, send, ends):
        send(whole(HEAD + image + TAIL, PARTS))

    tight = TransferLimits(study_bytes=len(images[0]) + 1)
    with pytest.raises(PacsError, match="1 of 2 images are in"):
        fetch_study(rogue(second_image(images, well)), "2.25.1", tmp_path, limits=tight)


def test_a_uid_that_would_be_another_address_is_not_asked_for(rogue, tmp_path):
    asked = []

    def lure(address, send, ends):
        asked.append(address)
        send(whole(json.dumps(entries("../../../admin")).encode()))

    with pytest.raises(PacsError, match="a UID of digits and dots"):
        fetch_study(rogue(lure), "2.25.1", tmp_path, limits=LIMITS)
    assert not [address for address in asked if "admin" in address]


def test_a_pacs_that_never_reads_what_it_is_sent_is_left(rogue, tmp_path):
    phantoms.write_exam(tmp_path)
    file = sorted(tmp_path.iterdir())[0]
    image = pydicom.dcmread(file)
    image.add_new(0x00420011, "OB", bytes(16 << 20))  # more than all buffers between take
    image.save_as(file)
    with pytest.raises(PacsError, match=rf"0 of 1 files were stored, but {file} was not"):
        store_files(rogue(say_nothing), [file], limits=replace(LIMITS, idle_s=0.3))


def test_signs_that_steer_a_terminal_are_not_printed(rogue):
    entry = {"0020000D": {"Value": ["2.25.1"]}, "00081030": {"Value": ["\x1b[2Jgone\r\nx"]}}

    def steer(_, send, ends):
        send(whole(json.dumps([entry]).encode()))

    done = CliRunner().invoke(app, ["pacs", "list", rogue(steer)])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert done.output.count("\n") == 2


# ---- the clock


def test_a_transfer_may_take_as_long_as_its_bytes_need_but_not_longer_than_the_whole_time():
    now = [0.0]
    limits = TransferLimits(idle_s=20, grace_s=60, bytes_per_s=100)
    pace = Pace(limits, lambda: now[0])
    pace.begin(1 << 20, 500)
    assert pace.wait_s() == 20
    now[0] = 55
    assert pace.wait_s() == 5  # 60 s for the first byte
    pace.took(0, 1000)
    assert pace.wait_s() == 15  # 1000 bytes more allow 10 s more
    pace.took(0, 100_000)
    now[0] = 495
    assert pace.wait_s() == 5  # the whole time
    now[0] = 500
    with pytest.raises(TimeoutError, match="the transfer took 500 s for 101000 bytes"):
        pace.wait_s()


def test_each_transfer_has_its_own_time():
    now = [0.0]
    pace = Pace(TransferLimits(), lambda: now[0])
    now[0] = 1e6
    pace.begin(10, 60)
    assert pace.wait_s() == 20


# ---------------------------------------------------------------- another server than the named one


def sends_to(target, status=b"302 Found"):
    """Return a behaviour that redirects every request, and the requests that it got."""
    asked = []

    def redirect(address, send, _):
        asked.append(address)
        place = target(address) if callable(target) else target
        head = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: 0\r\nLocation: "
        send(head + place.encode("latin-1") + b"\r\n\r\n")

    return redirect, asked


@pytest.fixture
def other(rogue):
    """Return the port of a second server of this computer, and the requests that it got."""
    asked = []

    def answer(address, send, _):
        asked.append(address)
        send(whole(b"[]"))

    return int(rogue(answer).rpartition(":")[2].partition("/")[0]), asked


ELSEWHERE = {
    "another port": "http://127.0.0.1:{other}/dicom-web/studies",
    "another name of this computer": "http://localhost:{other}/dicom-web/studies",
    "another name, the same port": "http://localhost:{own}/dicom-web/studies",
    "without a scheme": "//127.0.0.1:{other}/studies",
    "a name in front of the sign": "http://127.0.0.1:{own}@127.0.0.1:{other}/studies",
    "a backslash": "http://127.0.0.1:{other}\\@127.0.0.1:{own}/studies",
    "a name that begins alike": "http://127.0.0.1:{own}.localhost:{other}/studies",
    "a port that begins alike": "http://127.0.0.1:{own}0/studies",
    "another scheme": "https://127.0.0.1:{other}/studies",
    "a file": "file:///etc/hostname",
    "a file on this server": "file://127.0.0.1:{own}/etc/hostname",
    "data": "data:application/dicom+json,[]",
    "a number": "http://2130706433:{other}/studies",
    "capitals": "HTTP://127.0.0.1:{other}/studies",
}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"307 Again", b"308 Moved"])
def test_no_redirect_leads_to_another_server(rogue, other, tmp_path, name, status):
    port, asked_there = other
    place = []
    redirect, asked = sends_to(lambda _: place[0], status)
    url = rogue(redirect)
    own = url.rpartition(":")[2].partition("/")[0]
    place.append(ELSEWHERE[name].format(other=port, own=own))
    for transfer in (
        lambda: find_studies_on(url, limits=LIMITS, patient_id="secret"),
        lambda: fetch_study(url, "2.25.1", tmp_path / "in", limits=LIMITS),
    ):
        with pytest.raises(PacsError, match="the server redirects to") as error:
            transfer()
        assert "enter that address if you trust it" in str(error.value)
    assert (len(asked), asked_there) == (2, [])
    assert not list(tmp_path.rglob("*"))


def test_a_redirect_after_one_on_the_same_server_is_looked_at_too(rogue, other):
    port, asked_there = other

    def twice(address):
        return "/second" if "second" not in address else f"http://127.0.0.1:{port}/studies"

    redirect, asked = sends_to(twice)
    with pytest.raises(
        PacsError, match=rf"the server redirects to http://127\.0\.0\.1:{port}, which"
    ):
        find_studies_on(rogue(redirect), limits=LIMITS)
    assert [len(asked), asked[1], asked_there] == [2, "/second", []]


def test_a_redirect_on_the_same_server_is_followed(rogue):
    study = json.dumps([{"0020000D": {"Value": ["2.25.7"]}}]).encode()

    def once(address, send, ends):
        if "moved" in address:
            send(whole(study))
        else:
            sends_to("/moved/dicom-web/studies")[0](address, send, ends)

    (found,) = find_studies_on(rogue(once), limits=LIMITS).studies
    assert found.study_uid == "2.25.7"


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See"])
def test_a_file_that_is_redirected_is_not_said_to_be_stored(rogue, images, tmp_path, status):
    """RFC 9110, 15.4: these make a POST a GET, which stores nothing and is answered too."""
    file = tmp_path / "a.dcm"
    file.write_bytes(images[0])

    def once(address, send, ends):
        if "moved" in address:
            send(whole(b"{}"))
        else:
            sends_to("/moved", status)[0](address, send, ends)

    with pytest.raises(PacsError, match="the server redirects the file to") as error:
        store_files(rogue(once), [file], limits=LIMITS)
    assert "0 of 1 files were stored" in str(error.value)


def test_an_answer_that_points_elsewhere_sends_nobody_there(rogue, other, images, tmp_path):
    """RetrieveURL and BulkDataURI of a list are another server's: images come from this one."""
    port, asked_there = other
    there = f"http://127.0.0.1:{port}/stolen"
    entry = entries(uid_of(images[0]))[0]
    entry |= {
        "00081190": {"vr": "UR", "Value": [there]},
        "7FE00010": {"vr": "OW", "BulkDataURI": there},
        "00400512": {"vr": "OB", "BulkDataURI": there},
    }
    listed = count()

    def answer(address, send, _):
        if f"instances/{uid_of(images[0])}" in address:
            send(OK + PARTS + b"\r\n" + HEAD + images[0] + TAIL)
        else:
            send(whole(json.dumps([entry] if not next(listed) else []).encode()))

    assert fetch_study(rogue(answer), "2.25.1", tmp_path / "in", limits=LIMITS).n_images == 1
    assert asked_there == []


@pytest.mark.parametrize(
    ("url", "same", "others"),
    [
        (
            "http://pacs/dicom-web",
            ["http://pacs:80/x", "HTTPS://PACS/x", "https://pacs:443/x"],
            ["http://pacs:443/x", "http://pacs:8042/x", "https://pacs:8443/x", "http://pacs.:80/"],
        ),
        (
            "https://user:word@Pacs:8443/dicom-web",
            ["https://pacs:8443/x", "https://user:word@pacs:8443/x"],
            ["http://pacs:8443/x", "https://pacs/x", "https://other@pacs:8443/"],
        ),
        (
            "http://[::1]:8042/dicom-web",
            ["http://[::1]:8042/x", "https://[::1]:8042/"],
            ["http://[::1]/x", "http://[::2]:8042/x", "http://[::1]:80420/x"],
        ),
    ],
)
def test_the_same_server_is_the_same_name_and_port_and_never_less_encrypted(url, same, others):
    from napari_mamamia.io.pacs.limits import limited_session

    session = limited_session(Pace(LIMITS), url)
    assert all(session.get_adapter(place) for place in same)
    for place in others:
        with pytest.raises(TimeoutError, match="the server redirects to"):
            session.get_adapter(place)


def test_the_command_names_the_server_that_it_was_sent_to(rogue, other):
    port, asked_there = other
    redirect, _ = sends_to(f"http://localhost:{port}/dicom-web/studies?PatientID=1")
    done = mamamia("pacs", "list", rogue(redirect), "--patient", "P1")
    assert done.returncode == 1
    assert f"redirects to http://localhost:{port}, which" in done.stderr
    assert asked_there == []
