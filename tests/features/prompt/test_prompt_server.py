"""The stock client in its process, against servers that lie, expire, are full or end."""

import json
import ssl
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from napari_mamamia.core.box import Box
from napari_mamamia.core.errors import MissingExtraError
from napari_mamamia.core.progress import Cancelled, listening
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineLostError,
    EngineSettings,
    Region,
)
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES
from napari_mamamia.features.prompt.segmentation.prompts import Prompt, place_prompt

blosc2 = pytest.importorskip("blosc2")
pytest.importorskip("nnInteractive")

SHAPE = (6, 8, 10)
IMAGE = np.arange(480, dtype=np.int16).reshape(SHAPE)
ABILITIES = {
    "supported_interactions": {"points": True, "bbox2d": True, "scribble": True, "lasso": True},
    "channel_mapping": {"points": [3, 4]},
    "num_interaction_channels": 7,
    "supports_initial_label": True,
    "supports_zero_shot_label_refinement": True,
    "preferred_scribble_thickness": [2, 2, 2],
    "interaction_decay": 0.98,
    "inference_session_version": "2.6.0",
    "license": "Licence X",
    "supports_undo": True,
}


def packed(shape, dtype="uint8", content=None) -> bytes:
    """Return an array as the server packs it, with any header."""
    content = bytes(8) if content is None else content
    chunk = blosc2.compress2(content, typesize=1)
    name = dtype.encode()
    head = struct.pack(f"<4sBBBB{len(name)}s", b"NNIA", 1, 1, len(shape), len(name), name)
    sizes = struct.pack(f"<{len(shape)}q", *shape) + struct.pack("<I", 1)
    return head + sizes + struct.pack("<QQ", len(content), len(chunk)) + chunk


class FakeServer(BaseHTTPRequestHandler):
    """Answers as the real server does, until a test says otherwise."""

    protocol_version = "HTTP/1.1"
    abilities = ABILITIES
    answer = staticmethod(lambda: (200, {}, b""))
    claim_status = 200
    seen: list[tuple[str, dict]]

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, status: int, headers: dict, body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.seen.append((self.path, dict(self.headers)))
        self._send(200, {}, json.dumps(self.abilities).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.path, dict(self.headers)))
        if self.path == "/claim":
            lease = {"lease_token": "t", "idle_timeout_seconds": 600, "liveness_timeout_seconds": 0}
            self._send(self.claim_status, {}, json.dumps(lease).encode())
        elif self.path == "/set_image":
            self._send(200, {}, json.dumps({"original_image_shape": [1, *SHAPE]}).encode())
        elif self.path.startswith("/add_point"):
            answer = self.answer()
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            self._send(*answer)
        else:
            self._send(200, {"X-Meta": '{"ran_prediction": false}'}, b"{}")


@contextmanager
def serving(certificate=None, **members):
    handler = type("Server", (FakeServer,), {"seen": [], **members})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    engine = PROMPT_ENGINES["remote"].make(
        EngineSettings(server=f"{scheme}://127.0.0.1:{server.server_port}")
    )
    try:
        yield engine, handler
    finally:
        engine.close()
        server.shutdown()
        server.server_close()


def prompted(engine):
    info = engine.connect()
    engine.set_image(IMAGE)
    return engine.prompt(place_prompt(Prompt("point", [(2, 3, 4)]), SHAPE, info.abilities))


def write_certificate(path, address):
    """Write a key and a certificate that signs itself, for an address."""
    import datetime
    import ipaddress

    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ward")])
    day, now = datetime.timedelta(days=1), datetime.datetime.now(datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address(address))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    private = key.private_bytes(*form, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(
    ("address", "is_trusted"), [("127.0.0.1", True), ("127.0.0.1", False), ("10.0.0.1", True)]
)
def test_https_works_with_a_trusted_certificate_of_that_address_only(
    tmp_path, monkeypatch, address, is_trusted
):
    """Without trust, or for another address, the server sees no request, not even the key."""
    certificate = write_certificate(tmp_path / "server.pem", address)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    answer = (200, met(BBOX), packed((2, 2, 2), content=bytes([1, 0, 0, 0, 0, 0, 0, 1])))
    with serving(certificate, answer=staticmethod(lambda: answer)) as (engine, handler):
        if is_trusted and address == "127.0.0.1":
            assert prompted(engine).mask.sum() == 2
        else:
            with pytest.raises(EngineLostError, match="certificate is not trusted"):
                prompted(engine)
            assert handler.seen == []


def met(bbox, shape=(2, 2, 2), dtype="uint8"):
    meta = {"ran_prediction": True, "bbox": bbox, "shape": shape, "dtype": dtype}
    return {"X-Meta": json.dumps(meta)}


BBOX = [[1, 3], [1, 3], [1, 3]]


def test_an_honest_server_s_region_is_returned_without_a_key(monkeypatch):
    monkeypatch.setenv("NN_INTERACTIVE_API_KEY", "secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    answer = (200, met(BBOX), packed((2, 2, 2), content=bytes([1, 0, 0, 0, 0, 0, 0, 1])))
    with serving(answer=staticmethod(lambda: answer)) as (engine, handler):
        region = prompted(engine)
    assert region.box == Box((1, 1, 1), (3, 3, 3))
    assert np.argwhere(region.mask).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert not any("Authorization" in headers for _, headers in handler.seen)


LIES = {
    "object pointers": (met(BBOX, dtype="object"), packed((1,), "object")),
    "8 TiB": (met(BBOX), packed((1 << 14, 1 << 13, 1 << 13))),
    "a shape of its own": (met(BBOX), packed((8,))),
    "another shape": (met(BBOX), packed((1, 2, 4))),
    "a negative shape": (met(BBOX), packed((-1, 2, -4))),
    "a box outside": (met([[4, 9], [1, 3], [1, 3]]), packed((2, 2, 2))),
    "a box before the image": (met([[-2, 0], [1, 3], [1, 3]]), packed((2, 2, 2))),
    "values above 1": (met(BBOX), packed((2, 2, 2), content=bytes([7] * 8))),
    "no array": (met(BBOX), b"NNIA"),
    "no json": ({"X-Meta": "{"}, b""),
    "a number as a box": (met(5), packed((2, 2, 2))),
}


QUICK = ("object pointers", "a box outside", "values above 1")


@pytest.mark.parametrize(
    "lie", [lie if lie in QUICK else pytest.param(lie, marks=pytest.mark.night) for lie in LIES]
)
def test_a_server_that_lies_ends_no_more_than_its_process(lie):
    headers, body = LIES[lie]
    with serving(answer=staticmethod(lambda: (200, headers, body))) as (engine, _):
        with pytest.raises(EngineLostError):
            prompted(engine)
        assert engine.pid is None


@pytest.mark.parametrize(
    "lie",
    [
        {"preferred_scribble_thickness": [10**9, 1, 1]},
        pytest.param({"supported_interactions": 3}, marks=pytest.mark.night),
    ],
)
def test_a_server_that_lies_about_itself_is_refused(lie):
    with serving(abilities=ABILITIES | lie) as (engine, _), pytest.raises(EngineLostError):
        engine.connect()


def test_a_server_s_licence_is_shown_without_control_characters():
    with serving(abilities=ABILITIES | {"license": "X\x1b[2J" + "y" * 999}) as (engine, _):
        licence = engine.connect().licence
    assert "\x1b" not in licence
    assert len(licence) <= 200


NIGHTLY = [pytest.param(status, marks=pytest.mark.night) for status in (500, 503, 401)]


@pytest.mark.parametrize("status", [410, None, *NIGHTLY])
def test_a_lost_server_leaves_the_engine_closed_and_it_opens_again(status):
    answers = [None if status is None else (status, {}, b'{"detail": "gone"}')]
    good = (200, met(BBOX), packed((2, 2, 2)))
    with serving(answer=staticmethod(lambda: answers.pop() if answers else good)) as (engine, _):
        with pytest.raises(EngineLostError):
            prompted(engine)
        assert not engine.is_open
        assert prompted(engine).mask.shape == (2, 2, 2)


@pytest.mark.parametrize(("status", "option"), [(503, ()), (401, ("api_key",))])
def test_a_full_server_or_a_wrong_key_is_reported_at_connecting(status, option):
    with serving(claim_status=status) as (engine, _):
        with pytest.raises(EngineLostError) as refusal:
            engine.connect()
        assert tuple(remedy.option for remedy in refusal.value.remedies) == option


def test_a_cancellation_ends_the_process():
    release = threading.Event()

    def wait():
        release.wait(30)
        return (200, met(None), b"")

    def cancel(progress) -> None:
        if progress.text == "Waiting for the prompt model":
            raise Cancelled

    with serving(answer=staticmethod(wait)) as (engine, _):
        with listening(cancel), pytest.raises(Cancelled):
            prompted(engine)
        assert engine.pid is None
        release.set()


def test_no_server_is_an_error_with_a_reason():
    engine = PROMPT_ENGINES["remote"].make(EngineSettings(server="http://127.0.0.1:9"))
    with pytest.raises(EngineLostError):
        engine.connect()


def test_a_mask_begins_a_session():
    with serving() as (engine, handler):
        engine.connect()
        engine.set_image(IMAGE)
        engine.start_from(Region(Box((1, 1, 1), (2, 3, 4)), np.ones((1, 2, 3), np.bool_)))
    assert "/add_initial_seg_interaction" in [path for path, _ in handler.seen]


def test_a_missing_client_names_the_extra(monkeypatch):
    from importlib.metadata import PackageNotFoundError

    def none(_name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr("napari_mamamia.features.prompt.segmentation.engines.version", none)
    with pytest.raises(MissingExtraError):
        PROMPT_ENGINES["remote"].make(EngineSettings(server="https://ward"))
