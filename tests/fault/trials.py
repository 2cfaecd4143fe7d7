"""A trial: a command in its world is struck, looked at, and run once more."""

import json
import random
import re
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults import READS, WRITES
from same import SECONDS, STAMP, contents, fault_of, files_below, is_temporary, strangers
from tests.cli.warm_program import warm_process
from worlds import Way, environment, furnished

from napari_mamamia.core.program.owner import owner_named

LIMIT_S = 120
KINDS = ("kill", "full", "eio", "estale")
COLUMNS = {"kill": "kill", "full": "full disk", "eio": "I/O error", "estale": "I/O error"}
SHARED = Path("/dev/shm")


@dataclass
class Undisturbed:
    """How a command ends by itself: exit code, what it wrote and printed, its steps on files."""

    code: int
    wrote: dict[str, object]
    printed: str
    counts: Counter[str]


@dataclass
class Trial:
    """What came of one fault; each list holds sentences, empty where all is well."""

    way: str
    kind: str
    at: int
    code: int = 0
    losses: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    manners: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [*self.losses, *self.leftovers, *self.manners]

    def __str__(self) -> str:
        return f"{self.way}, {self.kind} at step {self.at}: {'; '.join(self.problems) or 'well'}"


class Trials:
    """The warm process and the worlds, all below `folder`."""

    def __init__(self, folder: Path, *, has_figures: bool = False, python_path: str = "") -> None:
        self.folder = folder
        self._dots = not has_figures
        self._words: dict[str, list[str]] = {}
        self._undisturbed: dict[str, Undisturbed] = {}
        self._process = warm_process(python_path)

    # ------------------------------------------------------------------ worlds

    def world(self, way: Way) -> Path:
        """Return the way's world as it is before the command, made at the first time."""
        world = self.folder / way.name.replace(" ", "_")
        pristine = world.with_name(world.name + ".pristine")
        if way.name not in self._words:
            furnished(world)
            self._words[way.name] = way.make(world)
            shutil.copytree(world, pristine, symlinks=True)
        shutil.rmtree(world)
        shutil.copytree(pristine, world, symlinks=True)
        return world

    def words(self, way: Way) -> list[str]:
        self.undisturbed(way)
        return self._words[way.name]

    def undisturbed(self, way: Way) -> Undisturbed:
        if way.name not in self._undisturbed:
            world = self.world(way)
            answer = self.run(world, self._words[way.name])
            counts = Counter(json.loads((self.folder / "counts").read_text()))
            assert not answer["orphans"], answer
            found = Undisturbed(answer["code"], written(world, way), self.printed, counts)
            self._undisturbed[way.name] = found
        return self._undisturbed[way.name]

    def run(
        self,
        world: Path,
        words: list[str],
        kind: str = "",
        at: int = 0,
        number: int = signal.SIGINT,
        root: Path | None = None,
        pipe: Path | None = None,
    ) -> dict:
        """Run a command in a forked child, and say how it ended."""
        order = {
            "argv": words,
            "cwd": str(world),
            "env": environment(world),
            "root": str(root or world),
            "pipe": str(pipe),
            "kind": kind,
            "at": at,
            "number": int(number),
            "limit_s": LIMIT_S,
            "dots": self._dots,
            **{name: str(self.folder / name) for name in ("out", "err", "counts")},
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @property
    def said(self) -> str:
        """What the last command wrote to its error stream."""
        return (self.folder / "err").read_text(errors="replace")

    @property
    def printed(self) -> str:
        """What the last command printed, without moments and paces."""
        text = (self.folder / "out").read_text(errors="replace")
        return SECONDS.sub("", STAMP.sub("", text))

    # ------------------------------------------------------------------ trials

    def places(self, way: Way, kind: str, n: int, seed: int) -> list[int]:
        """Return up to `n` steps at which to strike, by chance, the same for the same seed."""
        counts = self.undisturbed(way).counts
        wanted = {"kill": None, "full": WRITES}.get(kind, READS)
        total = sum(k for what, k in counts.items() if wanted is None or what in wanted)
        chance = random.Random(f"{seed} {way.name} {kind}")
        return sorted(chance.sample(range(1, total + 1), min(n, total)))

    def strike(self, way: Way, kind: str, at: int) -> Trial:
        """Strike a command once, look at what is there, run it again, and look again."""
        usual = self.undisturbed(way)
        world = self.world(way)
        given = kept(world, way)
        older = written(world, way)
        answer = self.run(world, self._words[way.name], kind, at)
        trial = Trial(way.name, kind, at, answer["code"])
        is_complete = written(world, way) == usual.wrote
        if not way.out:
            is_complete = self.printed == usual.printed
        self._look_at_end(trial, answer, usual, is_complete)
        self._look_at_files(trial, world, way, older, given)
        is_done = written(world, way) == usual.wrote
        more = [word for word in way.again if word not in self._words[way.name]]
        answer = self.run(world, [*self._words[way.name], *more])
        if way.needs_new and trial.code == 3 and "new or empty folder" in self.said:
            (world / "out").rename(world / "tmp" / "told_incomplete")
            answer = self.run(world, [*self._words[way.name], *more])
        refused = is_done and answer["code"] == 1 and "Traceback" not in self.said
        if answer["code"] != usual.code and not refused:
            trial.losses.append(f"the next run ended with {answer['code']}: {self.said[-400:]}")
        trial.losses += differences(written(world, way), usual.wrote)
        trial.losses += strangers(world / "out") if way.makes_inputs else []
        if kept(world, way) != given:
            trial.losses.append("the next run changed what it was given")
        left = [path for path in files_below(world) if is_left(path, world)]
        left += [path for path in world.rglob(".mamamia-*") if path.is_dir()]
        left += [path for path in SHARED.glob(".mamamia-*") if is_abandoned(path)]
        trial.leftovers += [f"{path} stays after the next run" for path in left]
        return trial

    def _look_at_end(
        self, trial: Trial, answer: dict, usual: Undisturbed, is_complete: bool
    ) -> None:
        trial.leftovers += [f"goes on running: {line}" for line in answer["orphans"]]
        if answer["hung"]:
            trial.manners.append("hung")
        if trial.kind == "kill":
            return
        said = self.said
        if "Traceback" in said or "Exception ignored" in said:
            trial.manners.append(f"a traceback: {said[-600:]}")
        errors = [line for line in said.splitlines() if line.startswith(("error:", "failed:"))]
        command = trial.way.partition(" (")[0]
        is_told = errors or "warning:" in said or self._is_documented(command)
        if answer["code"] == usual.code and not is_complete and not is_told:
            trial.manners.append(
                f"exit code {answer['code']} though not all was done: {said[-300:]}"
            )
        if answer["code"] not in (usual.code, 1, 3, 130):
            trial.manners.append(f"exit code {answer['code']}")
        if answer["code"] in (1, 3) and not is_told:
            trial.manners.append(f"no error is told: {said[-300:]}")
        if sum(line.startswith("error:") for line in errors) > 1:
            trial.manners.append(f"several errors: {said[-600:]}")

    def _is_documented(self, command: str) -> bool:
        """Whether a command printed, as its help says that it does, what was wrong."""
        said = DOCUMENTED.get(command)
        return said is not None and re.search(said, self.printed, re.MULTILINE) is not None

    def _look_at_files(
        self, trial: Trial, world: Path, way: Way, older: dict[str, object], given: dict
    ) -> None:
        usual = self._undisturbed[way.name].wrote
        if kept(world, way) != given:
            trial.losses.append("what it was given has changed")
        for path in files_below(world):
            if not is_temporary(path, world):
                trial.losses += filter(None, [fault_of(path)])
        now = written(world, way)
        aside = [path for path in world.rglob(".mamamia-*") if ".was-" in path.name]
        lost = [
            name
            for name in older
            if name not in now and name not in MAY_GO and not is_aside(name, aside)
        ]
        trial.losses += [f"{name} is gone" for name in lost]
        for name, found in now.items():
            whole = (older.get(name), usual.get(name))
            if name.endswith((".nii.gz", ".nii", ".safetensors")) and found not in whole:
                trial.losses.append(f"{name} is neither the old file nor the new one")


def is_aside(name: str, folders: list[Path]) -> bool:
    """Whether a file lies in a folder that waits beside its place, and comes back to it."""
    file = Path(name)
    return any(
        folder.name.partition(".was-")[2] == file.parent.name and (folder / file.name).is_file()
        for folder in folders
    )


DOCUMENTED = {
    "cases": r"cannot be read|unreadable",
    "challenge run": r"unreadable|cannot be read|readable file",
    "challenge verify": r"^differs:",
    "check-computer": r"^FAILED",
    "export": r"[1-9]\d* red|^wrong:",
    "models list": r"cannot be used: .+",
    "models verify": r"cannot be|missing|changed",
    "score": r"unreadable|cannot be read",
    "verify": r"^wrong:|^FAILED",
}
"""What some commands print, among their results, of what cannot be read; a list of cases or models
is whole with it, a mask is exported without its images' quality. All others tell by an error."""

FOREIGN = {("home", ".cache"), ("home", ".config")}
BY_PROCESS = re.compile(r"(?<=/attempts/organiser/).*(?=\.jsonl$)")
"""Each process has a file of its own in the ledger of a challenge."""
MAY_GO = {"out/manifest.json"}
"""An export takes the manifest away first: until its end the bundle has none."""


def is_abandoned(path: Path) -> bool:
    """Whether a path in the shared memory belongs to a process that has ended; others may run."""
    owner = owner_named(path.name.removeprefix(".mamamia-"))
    return owner is not None and owner.runs is False


def is_left(path: Path, world: Path) -> bool:
    return is_temporary(path, world) or path.name.endswith((".lock", ".part", ".tmp"))


def written(world: Path, way: Way) -> dict[str, object]:
    """Return what lies where the command may write."""
    left_out = frozenset({"sha256"} if way.makes_inputs else ())
    return {
        BY_PROCESS.sub("", f"{name}/{inner}"): value
        for name in way.out
        if (world / name).exists()
        for inner, value in contents(world / name, left_out).items()
    }


def kept(world: Path, way: Way) -> dict[str, bytes]:
    """Return every file elsewhere, byte for byte; the place for temporary files apart."""
    return {
        str(path): path.read_bytes()
        for path in files_below(world)
        if not is_foreign(path.relative_to(world), way) and not is_left(path, world)
    }


def is_foreign(path: Path, way: Way) -> bool:
    """Whether a path is the command's to change, or a library's cache in the user's home."""
    return path.parts[0] in (*way.out, "tmp") or path.parts[:2] in FOREIGN


def differences(found: dict[str, object], usual: dict[str, object]) -> list[str]:
    """Return in what the next run's result differs from that of an undisturbed one."""
    said = [f"{name} is missing after the next run" for name in usual if name not in found]
    said += [f"{name} is there after the next run" for name in found if name not in usual]
    return said + [
        f"{name} differs after the next run"
        for name in found
        if name in usual and found[name] != usual[name]
    ]
