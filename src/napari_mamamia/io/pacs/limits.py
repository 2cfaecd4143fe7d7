"""An HTTP session with one PACS, with limits on time, silence, speed and size.

Without limits, a server that sends a byte a second, endless headers or a compression bomb could
block this program or fill its memory, because the time-out of a socket limits only silence. Nothing
is sent to any server except the one that the user named, even after a redirect, because a request
contains UIDs and the patient's id.
"""

import io
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from requests import PreparedRequest, Request, Response, Session
from requests.adapters import HTTPAdapter

_PIECE: Final = 1 << 16
# 15 is the window size of zlib, and 32 detects the format from the header.
_ZLIB_OR_GZIP: Final = 47


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """Limits for transfers from and to a PACS.

    `idle_s` is the longest silence. After `grace_s`, a transfer must average at least
    `bytes_per_s`. `list_s` and `list_bytes` limit a whole list with all its pages, and each
    response to a stored file. `image_s` and `image_bytes` limit one image, `study_bytes` limits all
    images of one study, and `n_images` and `n_studies` limit the entries of a list.
    """

    idle_s: float = 20.0
    grace_s: float = 60.0
    bytes_per_s: float = 1024.0
    list_s: float = 300.0
    list_bytes: int = 1 << 28
    image_s: float = 3600.0
    image_bytes: int = 1 << 31
    study_bytes: int = 1 << 36
    n_images: int = 200_000
    n_studies: int = 1000


class Pace:
    """Remaining time and size of a transfer; `reason` explains why it ended, or is ""."""

    def __init__(self, limits: TransferLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self.reason = ""
        self.begin(limits.list_bytes, limits.list_s)

    def begin(self, most_bytes: int, most_s: float) -> None:
        """Start a transfer of at most the given number of bytes and seconds."""
        self.reason = ""
        self._most_bytes, self._most_s = most_bytes, most_s
        self._start = self._clock()
        self._n_sent = self._n_received = 0

    @property
    def most_bytes(self) -> int:
        """Largest number of uncompressed bytes that the transfer may receive."""
        return self._most_bytes

    def wait_s(self) -> float:
        """Return the time in seconds to wait for the next bytes.

        Raises
        ------
        TimeoutError
            If the transfer has taken too long, or is too slow.
        """
        limits, spent = self._limits, self._clock() - self._start
        n_bytes = self._n_sent + self._n_received
        remaining_s = min(self._most_s, limits.grace_s + n_bytes / limits.bytes_per_s) - spent
        if remaining_s <= 0:
            self.stop(f"the transfer took {spent:.3g} s for {n_bytes} bytes and was stopped")
        return min(limits.idle_s, remaining_s)

    def silent(self) -> None:
        """Raise an error because no bytes arrived within `wait_s`."""
        self.wait_s()
        self.stop(f"no data arrived for {self._limits.idle_s:g} s")

    def took(self, n_sent: int, n_received: int) -> None:
        """Count bytes that were sent or received.

        Raises
        ------
        TimeoutError
            If the bytes exceed the limit of the transfer.
        """
        self._n_sent += n_sent
        self._n_received += n_received
        if self._n_received > self._most_bytes + _PIECE:  # The headers are counted separately.
            self.too_large()

    def too_large(self) -> None:
        """Raise an error because more bytes arrived than were allowed."""
        self.stop(f"the server sends more than {self._most_bytes / (1 << 20):.4g} MiB")

    def stop(self, reason: str) -> None:
        """End the transfer, and store `reason`, because libraries replace the error."""
        self.reason = reason
        raise TimeoutError(reason)


def limited_session(pace: Pace, url: str) -> Session:
    """Return a session that connects only to the server of `url`.

    Responses are read completely, uncompressed, and within the limits of `pace`.

    Raises
    ------
    ValueError
        If `url` is not a valid address.
    """
    session = _OneServerSession(pace)
    session.max_redirects = 5
    session.headers["Accept-Encoding"] = "identity"
    session.adapters.clear()
    for start in _list_starts(url):
        session.mount(start, _Adapter(pace))
    session.hooks["response"] = [lambda answer, *_, **__: _take_body(answer, pace)]
    return session


_PORTS: Final = {"http": 80, "https": 443}
_KEEPS_METHOD: Final = (307, 308)
"""Status codes of redirects that keep the method.

Other redirects turn a POST into a GET, so a file would not be stored. Source: RFC 9110, 15.4.
"""


def _list_starts(url: str) -> set[str]:
    """Return the possible beginnings of addresses on the server of `url`: scheme, name and port.

    For ``http``, the result includes ``https`` at the same port, or at its default port if ``http``
    uses its default port.
    """
    parts = urlsplit((Request("GET", url).prepare().url or "").lower())
    usual = _PORTS.get(parts.scheme)
    if usual is None or not parts.hostname:
        raise ValueError("the address must begin with http:// or https:// and a host name")
    user = parts.netloc.rpartition("@")[0]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port or usual
    starts = set()
    for scheme in ("http", "https") if parts.scheme == "http" else ("https",):
        same = _PORTS[scheme] if port == usual else port
        places = (f"{name}:{same}", name) if same == _PORTS[scheme] else (f"{name}:{same}",)
        starts |= {f"{scheme}://{place}/" for place in places}
        starts |= {f"{scheme}://{user}@{place}/" for place in places if user}
    return starts


class _OneServerSession(Session):
    """Session that sends only to addresses of one server, and otherwise ends the transfer.

    The start of an address is compared literally, so that two programs cannot interpret it
    differently.
    """

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def get_adapter(self, url: str) -> Any:
        """Return the adapter for an address on this server."""
        if not url.lower().startswith(tuple(self.adapters)):
            parts = urlsplit(url)
            where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
            self._pace.stop(
                f"the server redirects to {where[:100]}, which was not requested: enter that "
                "address if you trust it"
            )
        return super().get_adapter(url)

    def get_redirect_target(self, resp: Response) -> str | None:
        """Return the address to which a response redirects, or None."""
        target = super().get_redirect_target(resp)
        request: PreparedRequest = resp.request
        if target and request.method != "GET" and resp.status_code not in _KEEPS_METHOD:
            self._pace.stop(
                f"the server redirects the file to {target[:100]} in a way that prevents storing "
                f"it (status {resp.status_code}): enter that address"
            )
        return target


class _Adapter(HTTPAdapter):
    """Adapter whose connections apply the limits of a transfer."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def get_connection_with_tls_context(self, *args: Any, **named: Any) -> Any:
        """Return the connection pool for a request; its connections apply the limits."""
        pool = super().get_connection_with_tls_context(*args, **named)
        if not hasattr(pool.ConnectionCls, "keeps_pace"):
            pool.ConnectionCls = _pace_connection(pool.ConnectionCls, self._pace)
        return pool


def _pace_connection(connection: type[Any], pace: Pace) -> type[Any]:
    def connect(self: Any) -> None:
        connection.connect(self)
        self.sock = _PacedSocket(self.sock, pace)

    return type("PacedConnection", (connection,), {"connect": connect, "keeps_pace": True})


class _PacedSocket:
    """A socket with a time limit for every read and write."""

    def __init__(self, sock: Any, pace: Pace) -> None:
        self._sock = sock
        self._pace = pace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """Return a stream that is read within the limits."""
        raw = self._sock.makefile("rb", buffering=0)
        return io.BufferedReader(_PacedStream(raw, self._sock, self._pace))

    def sendall(self, data: Any) -> None:
        """Send all data in pieces."""
        rest = memoryview(data).cast("B")
        while rest:
            self._sock.settimeout(self._pace.wait_s())
            try:
                n_sent = self._sock.send(rest[:_PIECE])
            except TimeoutError:
                self._pace.silent()
                raise
            rest = rest[n_sent:]
            self._pace.took(n_sent, 0)


class _PacedStream(io.RawIOBase):
    def __init__(self, raw: Any, sock: Any, pace: Pace) -> None:
        super().__init__()
        self._raw, self._sock, self._pace = raw, sock, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._pace.wait_s())
        try:
            n_received = int(self._raw.readinto(buffer))
        except TimeoutError:
            self._pace.silent()
            raise
        self._pace.took(0, n_received)
        return n_received

    def close(self) -> None:
        self._raw.close()
        super().close()


def _take_body(answer: Response, pace: Pace) -> None:
    with closing(answer.raw) as stream:
        answer.raw = io.BytesIO(_whole_body(answer, stream, pace))


def _whole_body(answer: Response, stream: Any, pace: Pace) -> bytes | bytearray:
    packing = answer.headers.pop("Content-Encoding", "identity").strip().lower()
    if packing not in ("identity", "", "gzip", "x-gzip", "deflate"):
        pace.stop(
            f"the server compresses its response as {packing[:20]!r}, which was not requested"
        )
    length = answer.headers.get("Content-Length", "")
    # Twenty digits are sufficient, and Python rejects numbers with thousands of digits.
    if length.isdigit() and int(length[:20]) > pace.most_bytes:
        pace.too_large()
    body = bytearray()
    while plane := stream.read(_PIECE):
        body += plane
        if len(body) > pace.most_bytes:
            pace.too_large()
    return body if packing in ("identity", "") else _unpack_body(body, pace)


def _unpack_body(packed: bytearray, pace: Pace) -> bytes:
    if not packed:
        return b""
    inflate = zlib.decompressobj(_ZLIB_OR_GZIP)
    whole = inflate.decompress(packed, pace.most_bytes + 1)
    if len(whole) > pace.most_bytes:
        pace.too_large()
    if not inflate.eof:
        pace.stop("the compressed response ends too early")
    return whole
