"""Every command, started where somebody else's files lie: none of them is run."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from program import Program, Screen, wait_until
from test_blind_reading import colours, is_read

from napari_mamamia.cli import app
from napari_mamamia.core.edits import Brush
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.workspace.workspace import Workspace
from napari_mamamia.services.case.open_case import load_case
from napari_mamamia.services.refine.edit_case import open_editing
from napari_mamamia.smartpaint.brush.features import measure_features

pytestmark = pytest.mark.door

TESTS = Path(__file__).parents[1]

MODULES = """
    sitecustomize usercustomize json typing re random logging socket struct ctypes tempfile string
    subprocess multiprocessing threading dataclasses encodings platform pickle uuid warnings
    numpy pandas scipy matplotlib nibabel nrrd pydicom openpyxl skimage SimpleITK typer click rich
    torch monai onnxruntime openvino safetensors dask distributed tornado yaml cloudpickle
    napari napari_mamamia qtpy PyQt6 PySide6 vispy npe2 superqt IPython trap_backend model conftest
""".split()  # noqa: SIM905 - as a list it is 60 lines
PROGRAMS = """
    bwrap docker podman git nvidia-smi rm sh uname gcc cc ld objdump ldconfig lscpu fc-list latex
    dvipng python python3 napari mamamia
""".split()  # noqa: SIM905
SETTINGS = {
    "matplotlibrc": "text.usetex: True\nbackend: module://trap_backend\n",
    "trap.pth": "import napari_mamamia\n",
    "qt.conf": "[Paths]\nPlugins = .\n",
    "dask.yaml": "distributed:\n  worker:\n    preload: ['trap_backend']\n",
    "ipython_config.py": "import napari_mamamia\n",
    "pyproject.toml": "[tool.napari]\n",
    ".env": "PYTHONPATH=.\n",
    "trap-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: trap\nVersion: 1.0\n",
    "trap-1.0.dist-info/entry_points.txt": "[napari.manifest]\ntrap = trap_backend:napari.yaml\n",
    "platforms/libqxcb.so": "no library",
}


def set_traps(folder, sprung):
    """Fill a folder with what programs look for; whatever of it runs adds a line to `sprung`."""
    for name in MODULES:
        text = f"import os\nwith open({str(sprung)!r}, 'a') as file:\n"
        text += f"    file.write('module {name} in process %d\\n' % os.getpid())\n"
        (folder / f"{name}.py").write_text(text)
    for name in PROGRAMS:
        (folder / name).write_text(f'#!/bin/dash\necho "program {name} $*" >> {sprung}\n')
        (folder / name).chmod(0o755)
    for name, text in SETTINGS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def made_model(folder):
    """Write a small nnU-Net model, as tests of segmentation do."""
    found = importlib.util.spec_from_file_location(
        "made_models_here", TESTS / "segmentation" / "conftest.py"
    )
    made = importlib.util.module_from_spec(found)
    sys.modules["made_models_here"] = made
    found.loader.exec_module(made)
    return made.write_model(folder, made.Spec())


def made_journal(data_set, folder):
    case = load_case(find_data_set(data_set).case("A_2"))
    editing = open_editing(case, Workspace(folder), "Ana", None, measure_features(case))
    editing.session.press((4, 17, 23), Brush(radius_mm=5.0))
    editing.session.release()
    editing.close()
    return editing.journal.path


@pytest.fixture
def hostile(small_data_set, tmp_path):
    """Return a data set's folder full of traps, and the file that says which of them ran."""
    folder, sprung = tmp_path / "shared drive", tmp_path / "sprung.txt"
    small_data_set.rename(folder)
    made_model(folder / "results")
    shutil.copyfile(made_journal(folder, tmp_path / "w"), folder / "A_2.journal")
    (folder / "submission").mkdir()
    (folder / "submission" / "model.py").write_text("class Model:\n    pass\n")
    shutil.copytree(folder / "submission", folder / "challenge" / "submissions" / "submission")
    rows = ("A_1,0,0.2", "A_2,1,0.9", "B_1,0,0.1")
    (folder / "predictions.csv").write_text("\n".join(("patient_id,pcr,score", *rows)))
    (folder / "pass.txt").write_text("correct horse\n")
    (folder / "values.csv").write_text("case,dsc\nA_1,0.5\nA_2,0.7\n")
    (folder / "truth.csv").write_text("patient_id,pcr\nA_1,0\nA_2,1\nB_1,1\n")
    (folder / "scores.csv").write_text("case,y,m\nA_1,0,0.2\nA_2,1,0.9\nB_1,1,0.1\n")
    set_traps(folder, sprung)
    return folder, sprung


MODEL = "results/Dataset900_Made/nnUNetTrainer__nnUNetPlans__3d_fullres"
NOBODY = "http://127.0.0.1:9/dicom-web"
PAIR = "--reference segmentations/expert --prediction segmentations/expert"
QUICK = "--bootstrap 0"
PEOPLE = "--lead Lea --reader Ana --reader Ben"
COLUMNS = "--id case --label y --score m"
TOFTS = "--model tofts --aif parker --t10 1.4 --relaxivity 4.5"  # refused: 90 s apart

# in this order: some need what an earlier one wrote; relative paths start in the folder
SWEEP = (
    ("cases", ".", 0),
    ("layouts", "--propose .", 0),
    ("predict", ". --model kinetic --out masks --time-limit 60", 0),
    ("score", f"{PAIR} --out scores --time-limit 60 --images . {QUICK}", 0),
    ("challenge init", f"challenge --reference segmentations/expert --images . {QUICK}", 0),
    ("challenge run", "challenge --team submission --as-root", 3),
    ("challenge score", ". --challenge dream-mammography --reference .", 1),  # no column exam
    ("challenge rank", "challenge --out board", 1),
    ("challenge verify", "challenge --quick", 0),
    ("challenge publish", "challenge --out site", 1),  # nothing is ranked
    ("prompt", ". --case A_1 --reader Ana --point 1,1,1 --server http://127.0.0.1:9", 1),
    ("site evaluate", f"{PAIR} --site S --key s.key --digest expert={64 * 'a'} --out s.json", 0),
    ("site merge", "s.json --out merged", 0),
    ("review init", f". --out study {PEOPLE} --freeze", 0),
    ("review status", "study", 0),
    ("review verify", "study --images .", 0),
    ("review key", "study --reader Lea --passphrase-file pass.txt", 0),
    ("review countersign", "study --reader Lea --of Ana --digits 0 --passphrase-file pass.txt", 1),
    ("review revoke", "study --reader Lea --reason x --passphrase-file pass.txt", 0),
    ("review lead-key", "--passphrase-file pass.txt", 0),
    ("review sign", "study --reader Ana --case A_1 --meaning author --passphrase-file pass.txt", 1),
    ("review audit", "study --out audited --reader Lea", 0),
    ("review agreement", "study --out agreed --reader Lea", 0),
    ("review report", "study --out told --reader Lea --bootstrap 20", 0),
    ("review queue", "scores --out queue", 0),
    ("review capture", "queue/queue.json --found scores.csv --out caught", 1),
    ("review export", "study --out left --reader Lea", 0),
    ("report", ". --out told2 --case A_1", 0),
    ("replay", "A_2.journal --case . --out replayed.nii.gz", 0),
    ("run-submission", "submission . --out run --case A_1 --as-root", 3),
    ("import", "images --out imported", 1),
    ("export", ". --masks masks --out bundle", 0),
    ("verify", "bundle", 0),
    ("register", ". --out ../moved --case A_1", 0),
    ("rank", "values.csv --out ../ranks --resamples 5", 0),
    ("straighten", ". --out ../straight", 1),
    ("findings", ". --out ../found", 0),
    ("desktop", "--remove", 0),
    ("models add", f"{MODEL} --name m --registry reg", 0),
    ("models list", "--registry reg", 0),
    ("models show", "m --registry reg", 0),
    ("models verify", "m --registry reg", 0),
    ("models wrap", "results --phase 0 --label 1 --out wrapped", 1),
    ("score-classifier", f"scores.csv {COLUMNS} --out classified {QUICK}", 0),
    ("audit", "scores.csv --label y --out leaks", 0),
    ("split", "scores.csv --patient case --part a=1 --part b=1 --out parts", 0),
    ("stack", f"scores.csv {COLUMNS} --out-of-fold --out stacked", 1),
    ("clinical", "truth.csv --write-columns columns.json", 0),
    ("pacs list", NOBODY, 1),
    ("pacs fetch", f"{NOBODY} 1.2.3 --out fetched", 1),
    ("pacs send", f"{NOBODY} images/A_1/A_1_0000.nii.gz", 1),
)
AT_NIGHT = (
    ("predict", f". --model {MODEL} --case A_1 --out masks2", 0),
    ("score", f"{PAIR} --out scores --workers 1 --time-limit 60 {QUICK}", 0),
    ("score-table", f"scores/case_scores.csv --out scores2 {QUICK}", 0),
    ("score-detection", f"{PAIR} --out scores4 {QUICK}", 0),
    ("score-pcr", f"predictions.csv --clinical truth.csv --out scores3 {QUICK}", 0),
    ("kinetics", ". --out curves --time-limit 60 --case A_1", 0),
    ("perfusion", f". --out ktrans --case A_1 {TOFTS}", 3),
    ("models convert", f"{MODEL} --out converted", 0),
    ("check-computer", "", 0),
    ("demo", "--out demo", 0),
)


BY_DAY = {"predict", "run-submission", "report", "models wrap"}
"""One of each way to load and start things; all of them at night.

A worker of our own; a sealed program of somebody else's, by bwrap and git; figures, by Matplotlib's
own backend and fonts; a model, by torch. What makes all safe is how the script is started,
`child_environment` for what we start, and for what libraries start the first line of the one `main`
of all commands (tests/cli/test_main.py).
"""


def commands_of(command, before=""):
    """Yield the names of all commands of the program."""
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from commands_of(inner, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def hostile_environment(folder):
    """Return variables with the current folder in each list of folders, as careless profiles do."""
    path = os.environ["PATH"]
    return {
        **os.environ,
        "PATH": os.pathsep.join((".", "", str(folder), path, "")),
        "LD_LIBRARY_PATH": os.pathsep.join(("", ".")),
        "MPLBACKEND": "module://trap_backend",
    }


def run_there(scripts, folder, words):
    return subprocess.run(
        [str(scripts / "mamamia"), *words],
        cwd=folder,
        env=hostile_environment(folder),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_every_command_has_its_line_in_a_sweep():
    listed = {name for name, _, _ in SWEEP + AT_NIGHT} | {"view"}
    assert listed >= BY_DAY
    assert set(commands_of(typer.main.get_command(app))) == listed


def sweep(scripts, hostile, lines):
    folder, sprung = hostile
    for name, words, code in lines:
        done = run_there(scripts, folder, [*name.split(), *words.split()])
        said = f"mamamia {name}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
        assert not sprung.exists(), f"{sprung.read_text()}\n{said}"
        assert done.returncode == code, said


@pytest.mark.parametrize(
    "lines",
    [
        [line for line in SWEEP if line[0] in BY_DAY],
        pytest.param(SWEEP, marks=pytest.mark.night),
        pytest.param(AT_NIGHT, marks=pytest.mark.night),
    ],
    ids=["day", "every", "slow"],
)
def test_no_command_runs_a_file_of_the_folder_that_it_is_started_in(scripts, hostile, lines):
    sweep(scripts, hostile, lines)


def test_the_window_runs_no_file_of_the_folder_and_started_blind_shows_no_mask(scripts, hostile):
    folder, sprung = hostile
    with Screen() as screen:
        words = [str(scripts / "mamamia"), "view", ".", "--case", "A_1", "--blind"]
        with Program(words, screen, folder, **hostile_environment(folder)) as program:
            program.wait_for_text("Blind: reference, model, other readers, numbers and")
            wait_until(lambda: is_read(program), "the case")
            program.screen.key("space")
            assert colours(program) == (0, 0)
            where = Path(f"/proc/{program.process.pid}/cwd").readlink()
    assert not sprung.exists(), sprung.read_text()
    assert where == Path.home()


def test_the_traps_catch_a_command_that_looks_in_its_folder(scripts, hostile):
    folder, sprung = hostile
    # a command that ran within these tests may have made Python safe for what follows it
    careless = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    numpy = [str(scripts / "python"), "-c", "import numpy"]
    subprocess.run(numpy, cwd=folder, env=careless, check=False)
    subprocess.run(["bwrap", "--version"], cwd=folder, env=hostile_environment(folder), check=False)
    text = sprung.read_text()
    assert "module numpy" in text
    assert "program bwrap --version" in text
