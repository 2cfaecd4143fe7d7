"""The notebook that downloads a real exam, from a server on this computer."""

import contextlib
import io
import json
import threading
import zipfile
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from tests.library.test_notebooks import FOLDER, NOBODY, _code, _run

import napari_mamamia as mm

NOTEBOOK = FOLDER / "8_a_real_exam.ipynb"


def list_series(folder):
    """Return the files of each series in a folder, by (study, modality, series)."""
    from pydicom import dcmread

    series = defaultdict(list)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        read = dcmread(path, stop_before_pixels=True)
        series[read.StudyInstanceUID, read.Modality, read.SeriesInstanceUID].append(path)
    return series


@pytest.fixture
def serve():
    """Return a function that serves exams as the archive does, and returns address and queries."""
    servers = []

    def start(folder):
        series, asked = list_series(folder), []
        (study,) = {key[0] for key in series}
        later = {"StudyInstanceUID": "1.2.3", "StudyDate": "1990-01-01 00:00:00.0"}

        class Archive(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlparse(self.path)
                values = {name: value[0] for name, value in parse_qs(url.query).items()}
                asked.append((url.path, values))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answers[url.path](values))

            def log_message(self, *_):
                pass

        def zipped(values):
            (paths,) = (
                files for key, files in series.items() if key[2] == values["SeriesInstanceUID"]
            )
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for number, path in enumerate(paths):
                    archive.write(path, f"1-{number:04d}.dcm")
            return packed.getvalue()

        answers = {
            "/v1/getPatientStudy": lambda _: json.dumps(
                [later, {"StudyInstanceUID": study, "StudyDate": "1985-01-01 00:00:00.0"}]
            ).encode(),
            "/v1/getSeries": lambda values: json.dumps(
                [
                    {"SeriesInstanceUID": uid, "Modality": modality}
                    for own, modality, uid in series
                    if own == values["StudyInstanceUID"]
                ]
            ).encode(),
            "/v1/getImage": zipped,
        }
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Archive))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/v1", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def download(address, monkeypatch):
    """Run the cells up to the download; return their names and what they printed."""
    monkeypatch.setenv("MAMAMIA_EXAM_ADDRESS", address)
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in _code(NOTEBOOK)[:2]:
            exec("".join(cell["source"]), names)
    return names, printed.getvalue()


def test_the_first_study_is_downloaded_file_by_file(serve, tmp_path, monkeypatch):
    own = mm.make_phantom_study(tmp_path / "own", shape=(12, 32, 32))
    address, asked = serve(own)
    names, printed = download(address, monkeypatch)
    assert printed.startswith("Real exam ISPY1_1002")
    assert {path.read_bytes() for path in names["study"].rglob("*.dcm")} == {
        path.read_bytes() for path in own.rglob("*") if path.is_file()
    }
    assert asked[0][1]["PatientID"] == "ISPY1_1002"


@pytest.mark.parametrize("kind", ["nobody", "no archive"])
def test_without_the_archive_a_phantom_is_used_and_said_to_be_one(
    kind, tmp_path, serve, monkeypatch
):
    own = mm.make_phantom_study(tmp_path / "own", shape=(12, 32, 32))
    address = NOBODY if kind == "nobody" else serve(own)[0].replace("/v1", "/wrong")
    names, printed = download(address, monkeypatch)
    assert printed.startswith("NOT A REAL EXAM")
    assert names["case_id"] == "PHANTOM"
    assert any(Path(names["study"]).iterdir())


@pytest.mark.real
@pytest.mark.night
def test_the_notebook_segments_refines_and_scores_a_real_exam(real_data, serve, tmp_path):
    with zipfile.ZipFile(real_data("ispy1_1002.zip")) as archive:
        archive.extractall(tmp_path / "exam")
    address, asked = serve(tmp_path / "exam")
    cells = _run(NOTEBOOK, tmp_path, address)
    said = [message for messages in cells for message in messages]
    assert [content["traceback"] for kind, content in said if kind == "error"] == []
    printed = "".join(content["text"] for kind, content in said if kind == "stream")
    assert "Real exam ISPY1_1002" in printed
    assert "seconds of the phases: [0, 423, 768]" in printed  # of the MAMA-MIA table
    assert len([path for path, _ in asked if path == "/v1/getImage"]) > 1
    assert any("image/png" in content.get("data", {}) for _, content in cells[-1])
