"""Every command in a small world of its own: what it is given, what it writes, how it goes on.

A world is a folder with data, masks, a home and a place for temporary files. `COMMANDS` must name
every command of the program; `test_faults` fails for one that is not listed.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np

TESTS = Path(__file__).parents[1]
SHAPE = (8, 32, 48)
BLOB = (slice(3, 6), slice(14, 20), slice(20, 26))
AFFINE = np.diag([-0.8, 0.8, 2.0, 1.0])
CASES = ("A_1", "A_2")


@dataclass(frozen=True)
class Way:
    """One way to call a command.

    `make` fills a world and returns the words; `again` are those that the next run has too; `out`
    is what the command may change. `is_slow` leaves it to the night. `makes_inputs`: it makes the
    images too, whose compressed bytes may differ, so that provenance is held against those there.
    `needs_new`: what ended with 3, and said what it left out, is not written over: the next run
    gets a new folder, as the message asks.
    """

    command: str
    make: Callable[[Path], list[str]]
    again: tuple[str, ...] = ()
    out: tuple[str, ...] = ("out",)
    title: str = ""
    is_slow: bool = False
    makes_inputs: bool = False
    needs_new: bool = False

    @property
    def name(self) -> str:
        return f"{self.command} ({self.title})" if self.title else self.command


def loaded(name: str, path: str):
    """Return a module of the tests by its file."""
    spec = importlib.util.spec_from_file_location(name, TESTS / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- what is given


def furnished(world: Path) -> None:
    """Make a home whose user has chosen things, and a place for temporary files."""
    for name in ("home/config", "tmp"):
        (world / name).mkdir(parents=True)
    (world / "home/config/preferences.json").write_text('{"reader": "Ana"}\n')
    (world / "home/config/deidentify.key").write_bytes(32 * b"5")


def write_nifti(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = nib.Nifti1Image(array.transpose(), AFFINE)
    image.header.set_xyzt_units("mm", "sec")
    image.set_sform(AFFINE, code=1)
    image.set_qform(AFFINE, code=1)
    nib.save(image, path)


def phase(index: int, rng: np.random.Generator) -> np.ndarray:
    volume = rng.normal(20, 3, SHAPE)
    volume[:, 4:, 6:42] += 180
    if index:
        volume[BLOB] += (0, 260, 240)[index]
    return np.clip(volume, 0, None).astype(np.int16)


def data_set(world: Path) -> str:
    root = world / "data set"
    rng = np.random.default_rng(7)
    reference = np.zeros(SHAPE, np.uint8)
    reference[BLOB] = 1
    rows = ["patient_id,age,menopause,breast_density,acquisition_times,pcr"]
    for number, case_id in enumerate(CASES):
        for k in range(3):
            write_nifti(root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz", phase(k, rng))
        write_nifti(root / "segmentations" / "expert" / f"{case_id}.nii.gz", reference)
        rows.append(f'{case_id},{45 + 12 * number},post,b,"[0, 90, 180]",{number}')
    (root / "clinical_and_imaging_info.csv").write_text("\n".join(rows) + "\n")
    return str(root)


def clinical(world: Path) -> str:
    return str(world / "data set" / "clinical_and_imaging_info.csv")


def masks(world: Path) -> str:
    folder = world / "masks"
    for number, case_id in enumerate(CASES):
        mask = np.zeros(SHAPE, np.uint8)
        mask[3:6, 14 + number : 20, 20:26] = 1
        write_nifti(folder / f"{case_id}.nii.gz", mask)
    return str(folder)


def dicom(world: Path, name: str = "dicom") -> str:
    loaded("dicom_phantoms", "dicom_phantoms.py").write_exam(world / name)
    return str(world / name)


def out(world: Path, name: str = "out") -> list[str]:
    return ["--out", str(world / name)]


def ran(world: Path, words: list[str]) -> None:
    """Run a command that went before, undisturbed; its user has the same home."""
    from typer.testing import CliRunner

    from napari_mamamia.cli.app import app

    done = CliRunner(env=environment(world)).invoke(app, words)
    assert done.exit_code == 0, done.output


def environment(world: Path) -> dict[str, str]:
    home = world / "home"
    return {
        "HOME": str(home),
        "TMPDIR": str(world / "tmp"),
        "MAMAMIA_CONFIG_DIR": str(home / "config"),
        "MAMAMIA_MODELS_DIR": str(home / "models"),
        "MAMAMIA_CACHE_DIR": str(home / "cache"),
    }


def score_words(world: Path) -> list[str]:
    root = Path(data_set(world))
    reference = str(root / "segmentations" / "expert")
    words = ["score", "--reference", reference, "--prediction", masks(world)]
    return [*words, "--clinical", clinical(world), "--bootstrap", "20", *out(world)]


# ---------------------------------------------------------------- the commands


def demo(world: Path) -> list[str]:
    return ["demo", *out(world)]


def cases(world: Path) -> list[str]:
    return ["cases", data_set(world)]


def layouts(world: Path) -> list[str]:
    return ["layouts", "--propose", data_set(world)]


def predict(world: Path) -> list[str]:
    return ["predict", data_set(world), *out(world)]


def score_table(world: Path) -> list[str]:
    rows = ["case_id,DSC,NormHD", *(f"{name},0.{8 - k},0.1" for k, name in enumerate(CASES))]
    (world / "scores.csv").write_text("\n".join(rows) + "\n")
    data_set(world)
    words = ["score-table", str(world / "scores.csv"), "--clinical", clinical(world)]
    return [*words, "--profile", "paper", "--bootstrap", "20", *out(world)]


def score_pcr(world: Path) -> list[str]:
    rows = ["patient_id,pcr,pcr_prob", *(f"{name},{k},0.{3 + k}" for k, name in enumerate(CASES))]
    (world / "predictions.csv").write_text("\n".join(rows) + "\n")
    data_set(world)
    words = ["score-pcr", str(world / "predictions.csv"), "--clinical", clinical(world)]
    return [*words, "--bootstrap", "20", *out(world)]


def classified(world: Path) -> str:
    rows = [f"c{k},{k % 2},0.{(3 * k) % 10}" for k in range(24)]
    (world / "classified.csv").write_text("\n".join(["id,y,m", *rows]) + "\n")
    return str(world / "classified.csv")


def score_classifier(world: Path) -> list[str]:
    columns = ["--id", "id", "--label", "y", "--score", "m"]
    return ["score-classifier", classified(world), *columns, "--bootstrap", "20", *out(world)]


def stack(world: Path) -> list[str]:
    columns = ["--id", "id", "--label", "y", "--score", "m", "--out-of-fold", "--folds", "3"]
    return ["stack", classified(world), *columns, "--bootstrap", "20", *out(world)]


def audit(world: Path) -> list[str]:
    return ["audit", classified(world), "--label", "y", *out(world)]


def split(world: Path) -> list[str]:
    parts = ["--part", "train=2", "--part", "test=1", "--stratum", "y"]
    return ["split", classified(world), "--patient", "id", *parts, *out(world)]


def challenge_init(world: Path) -> list[str]:
    root = Path(data_set(world))
    folder = world / "challenge"
    folder.mkdir()
    words = ["challenge", "init", str(folder), "--clinical", clinical(world), "--bootstrap", "20"]
    return [*words, "--reference", str(root / "segmentations" / "expert")]


def challenge_run(world: Path) -> list[str]:
    words = challenge_init(world)
    ran(world, words)
    Path(masks(world)).rename(world / "challenge" / "submissions" / "alpha")
    return ["challenge", "run", str(world / "challenge")]


def challenge_rank(world: Path) -> list[str]:
    words = challenge_run(world)
    ran(world, words)
    return ["challenge", "rank", str(world / "challenge"), *out(world)]


def challenge_publish(world: Path) -> list[str]:
    ran(world, challenge_run(world))
    ran(world, ["challenge", "rank", str(world / "challenge"), "--out", str(world / "board")])
    return ["challenge", "publish", str(world / "board"), *out(world), "--minimum-group", "2"]


def challenge_score(world: Path) -> list[str]:
    (world / "truth").mkdir()
    (world / "team").mkdir()
    (world / "truth" / "truth.csv").write_text("exam,cancer\nA,1\nB,0\n")
    (world / "team" / "predictions.csv").write_text("exam,confidence\nA,0.8\nB,0.3\n")
    words = ["challenge", "score", str(world / "team"), "--challenge", "dream-mammography"]
    return [*words, "--reference", str(world / "truth")]


def challenge_verify(world: Path) -> list[str]:
    words = challenge_run(world)
    ran(world, words)
    return ["challenge", "verify", str(world / "challenge")]


def rank(world: Path) -> list[str]:
    rows = ["case,A,B", *(f"{name},0.{8 - k},0.{5 + k}" for k, name in enumerate(CASES))]
    (world / "values.csv").write_text("\n".join(rows) + "\n")
    return ["rank", "--table", str(world / "values.csv"), "--resamples", "20", *out(world)]


def score_detection(world: Path) -> list[str]:
    root = Path(data_set(world))
    reference = str(root / "segmentations" / "expert")
    words = ["score-detection", "--reference", reference, "--prediction", masks(world)]
    return [*words, "--bootstrap", "20", *out(world)]


def site_evaluate(world: Path) -> list[str]:
    reference = str(Path(data_set(world)) / "segmentations" / "expert")
    words = ["site", "evaluate", "--reference", reference, "--prediction", f"a={masks(world)}"]
    (world / "out").mkdir()
    (world / "site.key").write_bytes(32 * b"7")
    words += ["--site", "S", "--key", str(world / "site.key"), "--digest", f"a={64 * 'a'}"]
    return [*words, "--out", str(world / "out" / "site.json")]


def site_merge(world: Path) -> list[str]:
    words = site_evaluate(world)
    ran(world, words)
    (world / "out").rename(world / "sites")
    return ["site", "merge", str(world / "sites" / "site.json"), *out(world)]


def review_init(world: Path) -> list[str]:
    people = ["--lead", "Lea", "--reader", "Ana", "--reader", "Ben"]
    words = ["review", "init", data_set(world), "--out", str(world / "study"), *people]
    return [*words, "--mode", "independent", "--freeze"]


def reviewed(world: Path, *, is_blind: bool = True) -> Path:
    """Make a study that two have read to the end, one of its masks waiting on this computer.

    Each sight of a blind study is an event of its own, so that no such run leaves it as it was.
    """
    ran(world, [*review_init(world), *["--not-blind"] * (not is_blind)])
    loaded("review_robot", "review_robot.py").read_all(
        world / "study", world / "robots", Path(masks(world))
    )
    return world / "study"


def review_status(world: Path) -> list[str]:
    return ["review", "status", str(reviewed(world)), *out(world)]


def review_verify(world: Path) -> list[str]:
    study = str(reviewed(world))
    return ["review", "verify", study, "--images", str(world / "data set"), *out(world)]


def review_audit(world: Path) -> list[str]:
    return ["review", "audit", str(reviewed(world, is_blind=False)), *out(world), "--reader", "lea"]


def review_agreement(world: Path) -> list[str]:
    words = ["review", "agreement", str(reviewed(world, is_blind=False)), *out(world)]
    return [*words, "--reader", "Lea", "--bootstrap", "20"]


def review_report(world: Path) -> list[str]:
    words = ["review", "report", str(reviewed(world, is_blind=False)), *out(world)]
    return [*words, "--reader", "Lea", "--bootstrap", "20", "--pictures", "1"]


def scored(world: Path) -> Path:
    """Write the table of scores that `mamamia score` writes, by itself."""
    from napari_mamamia.core.records import CaseScore, ScoreStatus
    from napari_mamamia.io.tables.tables import write_case_scores

    rows = [CaseScore(name, ScoreStatus.OK, 0.8 - k / 10) for k, name in enumerate(CASES)]
    (world / "scores").mkdir()
    write_case_scores(rows, world / "scores" / "case_scores.csv")
    return world / "scores" / "case_scores.csv"


def review_queue(world: Path) -> list[str]:
    return ["review", "queue", str(scored(world)), *out(world)]


def review_capture(world: Path) -> list[str]:
    from napari_mamamia.features.review.services.quality_queue import make_queue

    make_queue(scored(world), world / "scores")
    (world / "scores" / "marks.csv").write_text(f"case_id,error\n{CASES[0]},no\n")
    words = ["review", "capture", str(world / "scores" / "queue.json")]
    return [*words, "--found", str(world / "scores" / "marks.csv"), *out(world)]


def review_export(world: Path) -> list[str]:
    formats = ("masks", "answers", "monai-label", "grand-challenge", "events")
    words = [
        "review",
        "export",
        str(reviewed(world, is_blind=False)),
        *out(world),
        "--reader",
        "Lea",
    ]
    return [*words, *(word for name in formats for word in ("--format", name))]


def clinical_columns(world: Path) -> list[str]:
    data_set(world)
    table = clinical(world)
    (world / "out").mkdir()
    return ["clinical", table, "--write-columns", str(world / "out" / "columns.json")]


def replay(world: Path) -> list[str]:
    from napari_mamamia.core.edits import Brush
    from napari_mamamia.io.layouts.find import find_data_set
    from napari_mamamia.io.workspace.workspace import Workspace
    from napari_mamamia.services.case.open_case import load_case
    from napari_mamamia.services.refine.edit_case import open_editing
    from napari_mamamia.smartpaint.brush.features import measure_features

    root = Path(data_set(world))
    case = load_case(find_data_set(root).case("A_2"))
    images = measure_features(case)
    editing = open_editing(case, Workspace(world / "w"), "Ana", None, images)
    editing.session.press((4, 17, 23), Brush(radius_mm=5.0))
    editing.session.release()
    editing.close()
    journal = str(editing.journal.path)
    return ["replay", journal, "--case", str(root), "--out", str(world / "out" / "mask.nii.gz")]


WRITE_MASKS = """
import gzip
(out / "pred_segmentations").mkdir()
for case_id in self.dataset.get_patient_id_list():
    with gzip.open(self.dataset.get_dce_mri_path_list(case_id)[0]) as stream:
        header = bytearray(stream.read(352))
    header[70:74] = (2).to_bytes(2, "little") + (8).to_bytes(2, "little")
    header[112:120] = bytes(8)
    n = 1
    for axis in range(3):
        n *= int.from_bytes(header[42 + 2 * axis : 44 + 2 * axis], "little")
    with gzip.open(out / "pred_segmentations" / (case_id + ".nii.gz"), "wb") as stream:
        stream.write(bytes(header) + bytes(n))
"""


def submission(world: Path, *more: str) -> list[str]:
    foreign = loaded("foreign", "segmentation/foreign.py")
    folder = foreign.write_submission(world / "submission", WRITE_MASKS)
    words = ["run-submission", str(folder), data_set(world), "--task", "segmentation"]
    words += [] if os.getuid() else ["--as-root"]
    return [*words, *more, *out(world)]


def open_submission(world: Path) -> list[str]:
    return submission(world, "--isolation", "none", "--consent-no-isolation")


def check_computer(world: Path) -> list[str]:
    return ["check-computer", "--out", str(world / "out" / "check.txt")]


def import_folder(world: Path) -> list[str]:
    return ["import", dicom(world), "--case", "X_1", *out(world)]


def import_zip(world: Path) -> list[str]:
    shutil.make_archive(str(world / "exam"), "zip", dicom(world))
    shutil.rmtree(world / "dicom")
    return ["import", str(world / "exam.zip"), "--case", "X_1", *out(world)]


def import_over(world: Path) -> list[str]:
    words = import_folder(world)
    ran(world, words)
    return [*words, "--overwrite"]


def export(world: Path) -> list[str]:
    formats = [
        word for name in ("nifti", "challenge", "nnunet", "bids") for word in ("--format", name)
    ]
    words = ["export", data_set(world), "--masks", masks(world), "--with-images"]
    return [*words, *formats, *out(world)]


def export_over(world: Path) -> list[str]:
    words = ["export", data_set(world), "--masks", masks(world), *out(world)]
    ran(world, words)
    return [*words, "--overwrite"]


def verify(world: Path) -> list[str]:
    words = ["export", data_set(world), "--masks", masks(world), *out(world, "bundle")]
    ran(world, words)
    return ["verify", str(world / "bundle"), "--images", str(world / "data set")]


def kinetics(world: Path) -> list[str]:
    return ["kinetics", data_set(world), *out(world)]


def report_cases(world: Path) -> list[str]:
    return ["report", data_set(world), *out(world)]


def kinetics_in_child(world: Path) -> list[str]:
    return [*kinetics(world), "--time-limit", "100"]


def score_with_workers(world: Path) -> list[str]:
    return [*score_words(world), "--workers", "2"]


def perfusion(world: Path) -> list[str]:
    """Two ultrafast cases of 12 phases 5 s apart; contrast comes after the third."""
    root = world / "ultrafast"
    rng = np.random.default_rng(11)
    reference = np.zeros(SHAPE, np.uint8)
    reference[BLOB] = 1
    for case_id in CASES:
        for k in range(12):
            volume = rng.normal(200, 1, SHAPE)
            volume[BLOB] += 260 * (1 - np.exp(-max(0, k - 2) / 2))
            path = root / "images" / case_id / f"{case_id}_{k:04d}.nii.gz"
            write_nifti(path, volume.astype(np.int16))
        write_nifti(root / "segmentations" / "expert" / f"{case_id}.nii.gz", reference)
    times = ",".join(str(5 * k) for k in range(12))
    scan = ["--tr", "5", "--flip-angle", "12", "--t10", "1.4", "--relaxivity", "4.5"]
    model = ["--model", "tofts", "--aif", "parker", "--times", times, *scan]
    return ["perfusion", str(root), *model, *out(world)]


def register(world: Path) -> list[str]:
    return ["register", data_set(world), "--transform", "rigid", *out(world)]


def findings(world: Path) -> list[str]:
    from napari_mamamia.io.workspace.findings import FindingsChange, append_findings
    from napari_mamamia.services.case.data_set import open_data_set

    root = data_set(world)
    workspace = open_data_set(Path(root)).workspace
    answers = {"finding@1": "mass", "bpe": "mild"}
    append_findings(workspace.root, "Ana", CASES[0], FindingsChange({}, answers))
    workspace.note_data_set()
    return ["findings", root, *out(world)]


def straighten(world: Path) -> list[str]:
    root = Path(data_set(world))
    for path in root.rglob("*.nii.gz"):
        image = nib.load(path)
        affine = image.affine.copy()
        affine[:3, 2] += 0.3 * affine[:3, 1]
        leaning = nib.Nifti1Image(np.asarray(image.dataobj), affine)
        leaning.set_qform(None, 0)
        nib.save(leaning, path)
    return ["straighten", str(root), *out(world)]


def model(world: Path) -> str:
    """Write a small nnU-Net folder that loads."""
    made = loaded("made_models", "segmentation/conftest.py")
    return str(made.write_model(world, made.Spec()))


def added(world: Path) -> str:
    ran(world, ["models", "add", model(world), "--name", "mine"])
    return "mine"


def models_add(world: Path) -> list[str]:
    return ["models", "add", model(world), "--name", "mine"]


def desktop(world: Path) -> list[str]:
    return ["desktop"]


def models_list(world: Path) -> list[str]:
    added(world)
    return ["models", "list"]


def models_show(world: Path) -> list[str]:
    return ["models", "show", added(world)]


def models_verify(world: Path) -> list[str]:
    return ["models", "verify", added(world)]


def models_convert(world: Path) -> list[str]:
    made = loaded("made_models", "segmentation/conftest.py")
    root = made.write_model(world, made.Spec())
    return ["models", "convert", str(root), *out(world)]


def models_wrap(world: Path) -> list[str]:
    maker = loaded("bundle_maker_here", "segmentation/bundle_maker.py")
    inference = maker.config()
    lambdas = {"_target_": "Lambdad", "keys": "image", "func": "$lambda x: x * 2 + 1"}
    inference["preprocessing"]["transforms"].insert(2, lambdas)
    bundle = maker.write_bundle(world / "bundle", inference, wrap="model")
    return ["models", "wrap", str(bundle), "--phase=0", "--phase=2", "--label=1", *out(world)]


def pacs(world: Path) -> str:
    """Return the address of a server of the exam in the world, which serves until the tests end."""
    server = loaded("test_dicom_web", "io/test_dicom_web.py")
    return server.Pacs(Path(dicom(world, "archive"))).url


def pacs_list(world: Path) -> list[str]:
    return ["pacs", "list", pacs(world)]


def pacs_fetch(world: Path) -> list[str]:
    return ["pacs", "fetch", pacs(world), "2.25.1", *out(world)]


def pacs_send(world: Path) -> list[str]:
    url = pacs(world)
    files = sorted(str(path) for path in (world / "archive").iterdir())[:3]
    return ["pacs", "send", url, *files]


RESUME, OVER, HOME = ("--resume",), ("--overwrite",), ("home",)

COMMANDS = (
    Way("demo", demo, RESUME, ("out", "home"), is_slow=True, makes_inputs=True),
    Way("cases", cases, out=()),
    Way("layouts", layouts, out=()),
    Way("predict", predict, RESUME),
    Way("score", score_words, RESUME),
    Way("score", score_with_workers, RESUME, title="workers", is_slow=True),
    Way("score-table", score_table, OVER),
    Way("score-pcr", score_pcr, OVER),
    Way("score-classifier", score_classifier, OVER),
    Way("challenge init", challenge_init, out=("challenge",)),
    Way("challenge run", challenge_run, out=("challenge",)),
    Way("challenge rank", challenge_rank, OVER),
    Way("challenge publish", challenge_publish, OVER),
    Way("challenge score", challenge_score, out=()),
    Way("challenge verify", challenge_verify, out=()),
    Way("rank", rank, OVER),
    Way("score-detection", score_detection, OVER),
    Way("stack", stack, OVER),
    Way("audit", audit, OVER),
    Way("split", split, OVER),
    Way("site evaluate", site_evaluate, OVER),
    Way("site merge", site_merge, OVER),
    Way("review init", review_init, out=("study",)),
    Way("review status", review_status, out=("out", "home")),
    Way("review verify", review_verify, out=("out", "home")),
    Way("review audit", review_audit, out=("out", "home")),
    Way("review agreement", review_agreement, out=("out", "home")),
    Way("review report", review_report, OVER, out=("out", "home")),
    Way("review queue", review_queue, OVER),
    Way("review capture", review_capture, OVER),
    Way("review export", review_export, out=("out", "home"), needs_new=True),
    Way("clinical", clinical_columns),
    Way("replay", replay),
    Way("run-submission", open_submission, RESUME, title="no isolation"),
    Way("run-submission", submission, RESUME, title="closed room", is_slow=True),
    Way("check-computer", check_computer, OVER, is_slow=True),
    Way("import", import_folder, RESUME, ("out", "home"), title="folder"),
    Way("import", import_zip, RESUME, ("out", "home"), title="zip"),
    Way("import", import_over, (), ("out", "home"), title="over an older case"),
    Way("export", export, OVER),
    Way("export", export_over, (), title="over an older bundle"),
    Way("verify", verify, out=()),
    Way("report", report_cases, OVER),
    Way("kinetics", kinetics, RESUME),
    Way("kinetics", kinetics_in_child, RESUME, title="time limit", is_slow=True),
    Way("perfusion", perfusion, RESUME),
    Way("register", register, RESUME),
    Way("straighten", straighten, OVER),
    Way("findings", findings, OVER),
    Way("desktop", desktop, out=HOME),
    Way("models add", models_add, out=HOME),
    Way("models list", models_list, out=()),
    Way("models show", models_show, out=()),
    Way("models verify", models_verify, out=()),
    Way("models convert", models_convert, is_slow=True),
    Way("models wrap", models_wrap, is_slow=True),
    Way("pacs list", pacs_list, out=()),
    Way("pacs fetch", pacs_fetch),
    Way("pacs send", pacs_send, out=()),
)
"""Every way; `view` is a window, which tests/door/test_killed_window.py kills."""

ELSEWHERE = {
    "view": "tests/door/test_killed_window.py",
    # needs a model in another environment; the mask is written as any reader's edited mask
    "prompt": "tests/features/prompt/test_prompt_session.py",
    # what they write is an event, whose store is struck step by step there
    **{
        f"review {name}": "tests/features/review/test_review_store.py"
        for name in ("lead-key", "key", "countersign", "revoke", "sign")
    },
}
