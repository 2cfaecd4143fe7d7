"""A PACS over DICOMweb: a small server of our own that can break off, and a real Orthanc."""

import importlib.util
import io
import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.errors import FormatError, PacsError
from napari_mamamia.io.pacs.web import fetch_study, find_studies_on, store_files

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("dicomweb_client")

_SPEC = importlib.util.spec_from_file_location(
    "dicom_phantoms", Path(__file__).parents[1] / "dicom_phantoms.py"
)
phantoms = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(phantoms)

STUDY = "2.25.1"
BOUNDARY = "edge"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def reply(self, content, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[-1] == "studies":
            entry = {
                "0020000D": {"vr": "UI", "Value": [STUDY]},
                "00080020": {"vr": "DA", "Value": ["20200101"]},
                "00201208": {"vr": "IS", "Value": [str(len(self.pacs.images))]},
            }
            self.reply(json.dumps([entry]).encode(), "application/dicom+json")
        elif parts[-1] == "instances":
            listed = self.pacs.listed() if STUDY in parts else []
            if self.pacs.page:
                start = int(self.path.split("offset=")[1].split("&")[0])
                listed = listed[start : start + self.pacs.page]
            self.reply(json.dumps(listed).encode(), "application/dicom+json")
        elif self.pacs.breaks_after is not None and len(self.pacs.sent) >= self.pacs.breaks_after:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nhalf")
            self.close_connection = True
        else:
            self.pacs.sent.append(parts[-1])
            body = self.pacs.images[parts[-1]].read_bytes()
            head = f"--{BOUNDARY}\r\nContent-Type: application/dicom\r\n\r\n".encode()
            kind = f'multipart/related; type="application/dicom"; boundary={BOUNDARY}'
            self.reply(head + body + f"\r\n--{BOUNDARY}--".encode(), kind)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        start = body.index(b"\r\n\r\n") + 4
        self.pacs.stored.append(body[start : body.rindex(b"\r\n--")])
        self.reply(b"{}", "application/dicom+json")


class Pacs:
    """DICOMweb for the files of a folder; after `breaks_after` images it hangs up."""

    def __init__(self, folder):
        self.images = {str(pydicom.dcmread(f).SOPInstanceUID): f for f in sorted(folder.iterdir())}
        self.stored = []
        self.sent = []
        self.breaks_after = None
        self.page = 0
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (Handler,), {"pacs": self})
        )
        self.url = f"http://127.0.0.1:{self.server.server_port}/dicom-web"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def listed(self):
        return [
            {
                "0020000E": {"vr": "UI", "Value": ["2.25.100"]},
                "00080018": {"vr": "UI", "Value": [uid]},
            }
            for uid in self.images
        ]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def pacs(tmp_path):
    phantoms.write_exam(tmp_path / "archive")
    server = Pacs(tmp_path / "archive")
    yield server
    server.close()


def pixels(folder):
    images = [pydicom.dcmread(file) for file in folder.rglob("*.dcm")]
    return {str(image.SOPInstanceUID): image.PixelData for image in images}


def test_studies_are_listed_with_date_and_number_of_images(pacs):
    (study,) = find_studies_on(pacs.url).studies
    assert (study.study_uid, study.date, study.n_images) == (STUDY, "20200101", 12)


@pytest.mark.parametrize("page", [0, 5])
def test_a_fetched_study_is_that_of_the_pacs_which_may_list_it_in_pages(pacs, tmp_path, page):
    pacs.page = page
    fetched = fetch_study(pacs.url, STUDY, tmp_path / "in")
    assert (fetched.n_images, fetched.n_kept) == (12, 0)
    assert pixels(tmp_path / "in") == pixels(tmp_path / "archive")


def test_a_transfer_that_broke_off_goes_on_where_it_ended(pacs, tmp_path):
    pacs.breaks_after = 5
    with pytest.raises(
        PacsError, match=r"5 of 12 images are in .*run the command again to continue"
    ):
        fetch_study(pacs.url, STUDY, tmp_path / "in")
    assert len(pixels(tmp_path / "in")) == 5
    assert [file for file in (tmp_path / "in").rglob("*") if file.suffix == ".part"] == []
    pacs.breaks_after = None
    fetched = fetch_study(pacs.url, STUDY, tmp_path / "in")
    assert (fetched.n_images, fetched.n_kept) == (12, 5)
    assert len(pacs.sent) == len(set(pacs.sent)) == 12
    assert pixels(tmp_path / "in") == pixels(tmp_path / "archive")


def test_a_study_that_the_pacs_lacks_is_refused_by_its_uid(pacs, tmp_path):
    with pytest.raises(PacsError, match=r"expected study 2\.25\.9 at"):
        fetch_study(pacs.url, "2.25.9", tmp_path / "in")


def test_a_pacs_that_is_down_is_named(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/dicom-web"
    with pytest.raises(PacsError, match="expected a response from the PACS"):
        find_studies_on(url)


def test_an_address_that_is_none_is_refused():
    with pytest.raises(FormatError, match="expected a DICOMweb address"):
        find_studies_on("pacs")


def test_stored_files_arrive_with_their_values(pacs, tmp_path):
    files = sorted((tmp_path / "archive").iterdir())[:2]
    assert store_files(pacs.url, files) == 2
    sent = [pydicom.dcmread(io.BytesIO(body)) for body in pacs.stored]
    assert [image.PixelData for image in sent] == [pydicom.dcmread(f).PixelData for f in files]


def test_a_fetched_study_can_be_imported_by_two_commands(pacs, tmp_path):
    runner = CliRunner()
    folder, out = str(tmp_path / "in"), str(tmp_path / "out")
    listed = runner.invoke(app, ["pacs", "list", pacs.url])
    assert f"{STUDY}  20200101  12 images" in listed.output
    assert runner.invoke(app, ["pacs", "fetch", pacs.url, STUDY, "--out", folder]).exit_code == 0
    done = runner.invoke(app, ["import", folder, "--out", out, "--case", "P1"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/images/P1/P1_0002.nii.gz").is_file()


# ---- a real PACS


@pytest.fixture
def orthanc(tmp_path):
    program = shutil.which("Orthanc", path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin")
    plugins = sorted(Path("/usr").glob("**/orthanc/**/libOrthancDicomWeb.so*"))
    if program is None or not plugins:
        pytest.skip("needs the Debian packages orthanc and orthanc-dicomweb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "HttpPort": port,
        "RemoteAccessAllowed": False,
        "AuthenticationEnabled": False,
        "DicomServerEnabled": False,
        "StorageDirectory": str(tmp_path / "store"),
        "IndexDirectory": str(tmp_path / "store"),
        "Plugins": [str(plugins[0])],
    }
    (tmp_path / "orthanc.json").write_text(json.dumps(settings))
    process = subprocess.Popen(
        [program, str(tmp_path / "orthanc.json")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/system", timeout=1).close()
                break
            threading.Event().wait(0.1)
        yield f"http://127.0.0.1:{port}/dicom-web"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parity
def test_a_study_stored_in_orthanc_is_listed_and_fetched_as_it_was(orthanc, tmp_path):
    phantoms.write_exam(tmp_path / "archive")
    files = sorted((tmp_path / "archive").iterdir())
    assert store_files(orthanc, files) == 12
    assert [study.study_uid for study in find_studies_on(orthanc).studies] == [STUDY]
    fetched = fetch_study(orthanc, STUDY, tmp_path / "in")
    assert fetched.n_images == 12
    assert pixels(tmp_path / "in") == pixels(tmp_path / "archive")
