"""Check a computer's hardware and software, and models on inputs with a known result.

The log does not name any person, folder, computer or case, so it can be sent to a colleague.
"""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.features import list_features, load_part
from napari_mamamia.core.plugins import list_problems
from napari_mamamia.core.program.child_environment import find_program
from napari_mamamia.core.program.child_process import answer_of
from napari_mamamia.core.program.system import free_memory_bytes, is_root, total_memory_bytes
from napari_mamamia.core.progress import report_progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.io.files.own_paths import temporary_places
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.io.layouts.find import find_data_set
from napari_mamamia.io.layouts.known import list_layouts
from napari_mamamia.kinetics.map_kinds import MAPS
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.metrics.registry import METRIC_REGISTRY
from napari_mamamia.phantom import Phantom, PhantomSpec, TumourSpec, make_phantom_job
from napari_mamamia.scoring.case.profiles import PROFILES
from napari_mamamia.scoring.cohort.groups import GROUP_RULES
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.device import choose_device
from napari_mamamia.segmentation.run.engines import MODEL_KINDS
from napari_mamamia.segmentation.sandbox.isolation import find_isolation
from napari_mamamia.services.case.open_case import load_case, load_mask
from napari_mamamia.services.export.formats import EXPORT_FORMATS

# Hardware, GPUs, optional packages and isolation of a computer, without names.

_GB: Final = 10**9
_LEAST_MEMORY: Final = 8 * _GB
_LEAST_DISK: Final = 5 * _GB
_ASK_SECONDS: Final = 20.0
_HOOK: Final = "check_computer"
_EXTRAS: Final = (
    ("gui", ("napari", "qtpy")),
    ("segment", ("torch", "dynamic_network_architectures", "safetensors")),
    ("onnx", ("onnxruntime",)),
    ("bundle", ("monai",)),
    ("openvino", ("openvino",)),
    ("fast", ("numba",)),
    ("dicom", ("pydicom", "highdicom")),
    ("register", ("SimpleITK",)),
    ("parquet", ("pyarrow",)),
    ("prompt", ("nninteractive-client",)),
    ("libraries", ("SimpleITK", "torchio", "monai", "xarray")),
    ("cluster", ("dask", "distributed")),
)


class State(StrEnum):
    """The status of a finding."""

    OK = "ok"
    NOTE = "note"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check: the subject, the finding and its status."""

    name: str
    text: str
    state: State = State.OK


def hardware() -> Iterator[Finding]:
    """Yield the operating system, Python, CPU, memory and disk."""
    yield Finding("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Finding("python", platform.python_version())
    yield Finding("processor", f"{os.cpu_count() or 1} cores, {_find_processor()}")
    yield _check_memory()
    disk = shutil.disk_usage(temporary_places()[-1]).free
    state = State.OK if disk >= _LEAST_DISK else State.FAILED
    hint = "" if disk >= _LEAST_DISK else ": free at least 5 GB"
    yield Finding("disk for temporary files", f"{disk / _GB:.1f} GB free{hint}", state)


def _find_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "name unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "name unknown")


def _check_memory() -> Finding:
    total, free = total_memory_bytes(), free_memory_bytes()
    if total is None:
        return Finding("memory", "unknown on this system", State.NOTE)
    state = State.OK if total >= _LEAST_MEMORY else State.NOTE
    free_text = "" if free is None else f", {free / _GB:.1f} GB free"
    hint = "" if total >= _LEAST_MEMORY else ", less than the 8 GB that large cases need"
    return Finding("memory", f"{total / _GB:.1f} GB{free_text}{hint}", state)


def graphics() -> Iterator[Finding]:
    """Yield the GPUs that the driver reports and the devices that torch supports."""
    program = find_program("nvidia-smi")
    if program is None:
        yield Finding("graphics card", "no NVIDIA driver found: the processor is used", State.NOTE)
    else:
        yield Finding("graphics card", _query_cards(program))
    if importlib.util.find_spec("torch") is None:
        text = 'not installed: networks cannot run; pip install "napari-mamamia[segment]"'
        yield Finding("torch", text, State.NOTE)
        return
    version = importlib.metadata.version("torch")
    try:
        device = choose_device("auto")
    except MamamiaError as error:
        yield Finding("torch", f"{version}, but {error}", State.NOTE)
        return
    blind = program is not None and device == "cpu"
    hint = (
        ", although there is a GPU: install a torch version that matches its driver"
        if blind
        else ""
    )
    yield Finding(
        "torch", f"{version}, runs on {device}{hint}", State.FAILED if blind else State.OK
    )


def _query_cards(program: str) -> str:
    query = "--query-gpu=name,driver_version,memory.total,memory.free"
    answer = answer_of((program, query, "--format=csv,noheader"), _ASK_SECONDS)
    if not answer.is_good:
        return "the NVIDIA driver is installed but does not respond"
    return "; ".join(f"name, driver, memory, free: {line}" for line in answer.said.splitlines())


def extras() -> Iterator[Finding]:
    """Yield the installed optional packages with their versions."""
    for extra, packages in _EXTRAS:
        versions = [(name, _read_version(name)) for name in packages]
        missing = [name for name, version in versions if not version]
        text = ", ".join(f"{name} {version}" for name, version in versions if version)
        if missing:
            lacks = f"without {', '.join(missing)}"
            text = f"{text}; {lacks}" if text else "not installed"
        yield Finding(f"extra [{extra}]", text, State.NOTE if missing else State.OK)


def plugins() -> Iterator[Finding]:
    """Yield the installed features and the plug-ins that could not be loaded."""
    names = ", ".join(feature.name for feature in list_features())
    yield Finding("features", names or "none installed")
    for registry in (METRIC_REGISTRY, MAPS, PROFILES, GROUP_RULES, MODEL_KINDS, EXPORT_FORMATS):
        len(registry)  # accessing the attribute loads the plug-ins
    list_layouts()
    for problem in list_problems():
        yield Finding(f"plug-in {problem.name}", problem.text, State.FAILED)


def feature_findings() -> Iterator[Finding]:
    """Yield the findings of the installed features."""
    for feature in list_features():
        check = load_part(feature, feature.hooks[_HOOK]) if _HOOK in feature.hooks else None
        if check is not None:
            yield from check()


def _read_version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def isolation() -> Iterator[Finding]:
    """Yield the sandbox available for submissions, or the reason why there is none."""
    check = find_isolation()
    for sandbox in check.usable:
        yield Finding("isolation", sandbox.text)
    if is_root():
        text = (
            "this account is root: run submissions only with your consent; a different account "
            "is safer"
        )
        yield Finding("account", text, State.NOTE)
    if not check.usable:
        reasons = "; ".join(without_names(reason) for reason in check.reasons)
        yield Finding(
            "isolation",
            f"no sandbox is available, so submissions need your consent: {reasons}",
            State.NOTE,
        )


def without_names(text: str, case_id: str = "") -> str:
    """Return a message without folders and without the names of the user, computer and case."""
    words = []
    for word in text.split():
        bare = word.strip("\"'(),;:")
        is_path = "/" in bare or "\\" in bare or bare.startswith("~")
        words.append(word.replace(bare, "[path]") if is_path and len(bare) > 1 else word)
    joined = " ".join(words)
    for name in (case_id, Path.home().name, platform.node()):
        # A name of one or two letters is kept, because removing it would damage other words.
        joined = joined.replace(name, "[name]") if len(name) > 2 else joined
    return joined


_LEAST_DICE: Final = 0.8


@dataclass(frozen=True, slots=True)
class ComputerCheck:
    """All findings in order."""

    findings: tuple[Finding, ...]

    @property
    def all_ok(self) -> bool:
        """Return whether no check failed; notes do not count as failures."""
        return all(finding.state is not State.FAILED for finding in self.findings)


def check_computer(case: Path | None = None) -> ComputerCheck:
    """Check the computer, and run models on inputs with a known result.

    Parameters
    ----------
    case
        A case folder, a file, or a data set with one case, on which the models are also run.

    Raises
    ------
    FormatError, CaseError
        If `case` is not a case, or contains several cases.
    """
    report_progress(0, 4, "Checking the computer")
    user_case = None if case is None else (_own_case(case))
    findings = [*hardware(), *graphics(), *extras(), *plugins(), *isolation()]
    findings += feature_findings()
    report_progress(1, 4, "Testing the kinetic segmenter")
    phantom = make_phantom_job(_make_spec())
    findings.append(_kinetic_on_phantom(phantom))
    if user_case is not None:
        findings.append(_kinetic_on_own(*user_case))
    report_progress(2, 4, "Trying a network")
    for device in _list_devices():
        findings.append(_try_network(phantom.case, "a phantom", device))
        if user_case is not None:
            findings.append(_try_network(user_case[0], "your case", device))
    report_progress(4, 4, "Checked")
    return ComputerCheck(tuple(findings))


def check_text(checked: ComputerCheck) -> str:
    """Return the log: one line for each finding, and finally the number of failures."""
    width = max(len(finding.name) for finding in checked.findings)
    lines = [
        f"{finding.state.value:<6}  {finding.name:<{width}}  {finding.text}"
        for finding in checked.findings
    ]
    n_failed = sum(finding.state is State.FAILED for finding in checked.findings)
    last = f"{n_failed} of {len(lines)} checks failed" if n_failed else "nothing failed"
    return "\n".join([f"{software_version()}, {now_utc()}", *lines, last]) + "\n"


def save_check(checked: ComputerCheck, path: Path, *, overwrite: bool = False) -> None:
    """Write the log to a text file.

    Raises
    ------
    SaveConflictError, SaveError
    """
    write_text_atomically(path, check_text(checked), overwrite=overwrite)


def _own_case(path: Path) -> tuple[Case, Path | None]:
    data_set = find_data_set(path)
    if len(data_set.cases) != 1:
        raise CaseError(
            f"expected {path} to contain one case, but found {len(data_set.cases)}: choose the "
            "folder of one case"
        )
    files = data_set.cases[0]
    loaded = load_case(files)
    return loaded, files.reference


def _make_spec() -> PhantomSpec:
    return PhantomSpec(
        case_id="CHECK",
        seed=1,
        shape=(48, 100, 156),
        spacing_mm=(3.0, 2.0, 2.0),
        orientation="LAS",
        tumours=(TumourSpec(longest_mm=18.0),),
        background_enhancement_percent=10.0,
        contrast_to_noise=8.0,
    )


def _kinetic_on_phantom(phantom: Phantom) -> Finding:
    name = "kinetic segmenter on a phantom"
    started = time.monotonic()
    prediction = KineticSegmenter().predict(phantom.case)
    seconds = time.monotonic() - started
    score = dice(phantom.reference.array, prediction.mask.array)
    text = f"expected Dice to be at least {_LEAST_DICE}, but it is {score:.3f}, {seconds:.1f} s"
    return Finding(name, text, State.OK if score >= _LEAST_DICE else State.FAILED)


def _kinetic_on_own(case: Case, reference: Path | None) -> Finding:
    """Run the segmenter on the user's case; its Dice is reported but not judged."""
    name = "kinetic segmenter on your case"
    started = time.monotonic()
    try:
        prediction = KineticSegmenter().predict(case)
        seconds = time.monotonic() - started
        size = " x ".join(map(str, case.grid.shape))
        text = f"{len(case.phases)} phases of {size} voxels, {seconds:.1f} s"
        if reference is not None:
            truth = load_mask(reference, case).mask()
            text += f", Dice to the reference {dice(truth.array, prediction.mask.array):.3f}"
    except MamamiaError as error:
        return Finding(name, without_names(str(error), case.case_id), State.FAILED)
    return Finding(name, text)


def _list_devices() -> tuple[str, ...]:
    """Return the devices for the test network, or () if torch is not installed."""
    if any(importlib.util.find_spec(n) is None for n in ("torch", "dynamic_network_architectures")):
        return ()
    best = choose_device("auto")
    return ("cpu",) if best == "cpu" else ("cpu", best)


def _try_network(case: Case, what: str, device: str) -> Finding:
    from napari_mamamia.segmentation.run.self_test import run_test_block

    name = f"network on {what}, {device}"
    try:
        trial = run_test_block(case, device)
    except CaseError as error:  # Such a device is too small to test.
        return Finding(name, without_names(str(error), case.case_id), State.NOTE)
    except MamamiaError as error:
        return Finding(name, without_names(str(error), case.case_id), State.FAILED)
    text = (
        f"expected {trial.expected} tumour voxels of {trial.voxels}, but found {trial.got}; "
        f"{trial.differing} differ, {trial.near} of them near the threshold, {trial.seconds:.2f} s"
    )
    return Finding(name, text, State.OK if trial.passed else State.FAILED)
