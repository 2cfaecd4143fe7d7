"""Prompts on one small case, told the same way by the recorder and by the tests."""

import base64
import json
import zlib
from pathlib import Path

import numpy as np

from napari_mamamia.core.box import Box
from napari_mamamia.core.case import Case, Phase
from napari_mamamia.core.edits import Action, Brush, Tool
from napari_mamamia.core.grid import Grid
from napari_mamamia.features.prompt.segmentation.engine import EngineInfo, Region
from napari_mamamia.features.prompt.segmentation.prompts import Abilities, Prompt, PromptKind
from napari_mamamia.features.prompt.services.channels import ChannelImage, choose_channel
from napari_mamamia.features.prompt.services.session import PromptSession, run_prompt
from napari_mamamia.smartpaint.session.session import EditingSession

SHAPE = (24, 40, 48)
RECORDED = Path(__file__).with_name("recorded_answers.json")
START = Box((8, 10, 10), (12, 16, 18))


def small_case() -> Case:
    """Return a case of three phases of noise, whole numbers."""
    signal = np.random.default_rng(38).integers(0, 1000, (3, *SHAPE), dtype=np.int16)
    grid = Grid.of_spacing(SHAPE, (2.0, 0.8, 0.7))
    return Case("SMALL", grid, signal, tuple(Phase(index) for index in range(3)))


def new_session(labels: np.ndarray | None = None) -> EditingSession:
    case = small_case()
    labels = np.zeros(SHAPE, np.uint8) if labels is None else labels
    return EditingSession("SMALL", case.grid, labels, None)


def kinetic_labels() -> np.ndarray:
    """Return the mask that the story starts from, as if the kinetic segmenter had made it."""
    labels = np.zeros(SHAPE, np.uint8)
    labels[START.slices] = 1
    return labels


def started(engine, info: EngineInfo, live: EditingSession) -> PromptSession:
    """Return a prompt session on the first subtraction of the case."""
    case = small_case()
    return PromptSession(live, ChannelImage(case, choose_channel(case)), engine, info)


def ask(session: PromptSession, kind: str, points, include: bool = True):
    """Ask one prompt as the window does; return the outcome."""
    work = session.prepare(Prompt(kind, tuple(points), include))
    return session.finish(work, run_prompt(work))


BOX = ((9, 20, 20), (10, 30, 34))
OUTLINE = ((9.7, 19.7, 30), (20.3, 19.7, 30), (20.3, 30.3, 30), (9.7, 30.3, 30))
SCRIBBLE = ((9, 22, 22), (9, 22, 30))


def tell(session: PromptSession) -> list[np.ndarray]:
    """Prompt, brush, prompt, undo, prompt; return the mask after each step."""
    live, masks = session.live, []

    def note() -> None:
        masks.append(live.labels == 1)

    ask(session, "box", BOX)
    note()
    ask(session, "scribble", SCRIBBLE, include=False)
    note()
    live.press((9.0, 28.0, 32.0), Brush(Tool.SPHERE, Action.ERASE, radius_mm=1.5))
    live.release()
    note()
    ask(session, "outline", OUTLINE)
    note()
    live.undo()
    note()
    ask(session, "point", [(15, 20, 24)])
    note()
    return masks


class RecordingEngine:
    """Passes everything to a real engine, and keeps what was asked and answered."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.calls: list[dict] = []

    @property
    def is_open(self) -> bool:
        return self.engine.is_open

    def connect(self):
        info = self.engine.connect()
        abilities = info.abilities
        self.calls.append(
            {
                "call": "connect",
                "name": info.name,
                "licence": info.licence,
                "kinds": sorted(abilities.kinds),
                "boxes_3d": abilities.takes_3d_boxes,
                "thickness": abilities.thickness,
                "undo": info.has_undo,
            }
        )
        return info

    def set_image(self, image, spacing_mm=(1.0, 1.0, 1.0)) -> None:
        self.engine.set_image(image, spacing_mm)
        self.calls.append({"call": "set_image", "shape": image.shape, "crc": crc(image)})

    def start_from(self, region) -> None:
        self.engine.start_from(region)
        self.calls.append({"call": "start_from", "box": ends(region.box), "crc": crc(region.mask)})

    def prompt(self, placed):
        region = self.engine.prompt(placed)
        self.calls.append(asked(placed) | {"answer": ends(region.box), "mask": packed(region.mask)})
        return region

    def undo(self, checksum: int) -> bool:
        is_undone = self.engine.undo(checksum)
        self.calls.append({"call": "undo", "crc": checksum, "answer": is_undone})
        return is_undone

    def close(self) -> None:
        self.engine.close()


class RecordedEngine:
    """Answers as the real package did, and fails for a request that was never made to it."""

    def __init__(self, calls: list[dict] | None = None) -> None:
        self.calls = list(json.loads(RECORDED.read_text()) if calls is None else calls)
        self.is_open = False

    def _next(self, call: dict) -> dict:
        recorded = self.calls.pop(0)
        assert {name: recorded[name] for name in call} == call
        return recorded

    def connect(self) -> EngineInfo:
        call = self._next({"call": "connect"})
        kinds = frozenset(PromptKind(kind) for kind in call["kinds"])
        abilities = Abilities(kinds, call["boxes_3d"], tuple(call["thickness"]))
        return EngineInfo(call["name"], "sha256:0", call["licence"], abilities, call["undo"])

    def set_image(self, image, spacing_mm=(1.0, 1.0, 1.0)) -> None:
        self._next({"call": "set_image", "shape": list(image.shape), "crc": crc(image)})
        self.is_open = True

    def start_from(self, region) -> None:
        self._next({"call": "start_from", "box": ends(region.box), "crc": crc(region.mask)})

    def prompt(self, placed) -> Region:
        call = self._next(asked(placed))
        start, stop = call["answer"]
        box = Box(tuple(start), tuple(stop))
        bits = np.frombuffer(zlib.decompress(base64.b64decode(call["mask"])), np.uint8)
        mask = np.unpackbits(bits)[: int(np.prod(box.shape))].reshape(box.shape)
        return Region(box, mask.astype(np.bool_))

    def undo(self, checksum: int) -> bool:
        return self._next({"call": "undo", "crc": checksum})["answer"]

    def close(self) -> None:
        self.is_open = False


def asked(placed) -> dict:
    prompt = placed.prompt
    return {
        "call": "prompt",
        "kind": prompt.kind.value,
        "include": prompt.include,
        "box": ends(placed.box),
        "crc": 0 if placed.voxels is None else crc(placed.voxels),
    }


def ends(box: Box) -> list[list[int]]:
    return [[int(n) for n in box.start], [int(n) for n in box.stop]]


def crc(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def packed(mask: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes())).decode("ascii")
