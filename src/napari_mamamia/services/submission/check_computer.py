"""Checking a computer: what it has, and models whose result is known before they run.

The log names no person, no folder, no computer and no case, so that it can be sent to a colleague.
"""

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from napari_mamamia.core.case import Case
from napari_mamamia.core.errors import CaseError, MamamiaError
from napari_mamamia.core.progress import Job, Progress
from napari_mamamia.core.provenance import now_utc, software_version
from napari_mamamia.io.data_set.layout import find_data_set
from napari_mamamia.io.files.save import write_text_atomically
from napari_mamamia.metrics.overlap import dice
from napari_mamamia.phantom import Phantom, PhantomSpec, TumourSpec, make_phantom_job
from napari_mamamia.segmentation.kinetic.kinetic import KineticSegmenter
from napari_mamamia.segmentation.model.device import choose_device
from napari_mamamia.services.case.open_case import load_case, load_mask
from napari_mamamia.services.submission.computer_facts import (
    Finding,
    State,
    extras,
    graphics,
    hardware,
    isolation,
    without_names,
)

__all__ = ["ComputerCheck", "check_computer", "check_text", "save_check"]

_LEAST_DICE: Final = 0.8


@dataclass(frozen=True, slots=True)
class ComputerCheck:
    """All findings, in order."""

    findings: tuple[Finding, ...]

    @property
    def all_ok(self) -> bool:
        """Whether nothing failed; notes do not count."""
        return all(finding.state is not State.FAILED for finding in self.findings)


def check_computer(case: Path | None = None) -> Job[ComputerCheck]:
    """Return a job that looks at the computer and runs models whose result is known.

    Parameters
    ----------
    case
        A case folder, a file, or a data set of one case, to try the models on too.

    Raises
    ------
    FormatError, CaseError
        If `case` is none, or there are several.
    """
    yield Progress(0, 4, "Looking at the computer")
    own = None if case is None else (yield from _own_case(case))
    findings = [*hardware(), *graphics(), *extras(), *isolation()]
    yield Progress(1, 4, "Trying the kinetic segmenter")
    phantom = yield from make_phantom_job(_spec())
    findings.append((yield from _kinetic_on_phantom(phantom)))
    if own is not None:
        findings.append((yield from _kinetic_on_own(*own)))
    yield Progress(2, 4, "Trying a network")
    for device in _devices():
        findings.append((yield from _network(phantom.case, "a phantom", device)))
        if own is not None:
            findings.append((yield from _network(own[0], "your case", device)))
    yield Progress(4, 4, "Checked")
    return ComputerCheck(tuple(findings))


def check_text(checked: ComputerCheck) -> str:
    """Return the log: one line for each finding, and a last one that says how many failed."""
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


def _own_case(path: Path) -> Job[tuple[Case, Path | None]]:
    data_set = find_data_set(path)
    if len(data_set.cases) != 1:
        raise CaseError(
            f"one case should be at {path}, but there are {len(data_set.cases)}: give the folder "
            "of one case"
        )
    files = data_set.cases[0]
    loaded = yield from load_case(files)
    return loaded, files.reference


def _spec() -> PhantomSpec:
    """Return the phantom that is tried: one mass of 18 mm, much contrast, little background."""
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


def _kinetic_on_phantom(phantom: Phantom) -> Job[Finding]:
    name = "kinetic segmenter on a phantom"
    started = time.monotonic()
    prediction = yield from KineticSegmenter().predict(phantom.case)
    seconds = time.monotonic() - started
    score = dice(phantom.reference.array, prediction.mask.array)
    text = f"expected Dice at least {_LEAST_DICE}, got {score:.3f}, {seconds:.1f} s"
    return Finding(name, text, State.OK if score >= _LEAST_DICE else State.FAILED)


def _kinetic_on_own(case: Case, reference: Path | None) -> Job[Finding]:
    """Run the segmenter on the user's case; its mask is no truth, so nothing fails by its score."""
    name = "kinetic segmenter on your case"
    started = time.monotonic()
    try:
        prediction = yield from KineticSegmenter().predict(case)
        seconds = time.monotonic() - started
        size = " x ".join(map(str, case.grid.shape))
        text = f"{len(case.phases)} phases of {size} voxels, {seconds:.1f} s"
        if reference is not None:
            truth = load_mask(reference, case).mask()
            text += f", Dice to the reference {dice(truth.array, prediction.mask.array):.3f}"
    except MamamiaError as error:
        return Finding(name, without_names(str(error), case.case_id), State.FAILED)
    return Finding(name, text)


def _devices() -> tuple[str, ...]:
    """Return where the test network can run; none without torch."""
    if any(importlib.util.find_spec(n) is None for n in ("torch", "dynamic_network_architectures")):
        return ()
    best = choose_device("auto")
    return ("cpu",) if best == "cpu" else ("cpu", best)


def _network(case: Case, what: str, device: str) -> Job[Finding]:
    from napari_mamamia.segmentation.run.self_test import run_test_block

    name = f"network on {what}, {device}"
    try:
        done = yield from run_test_block(case, device)
    except CaseError as error:  # too small: says nothing of the computer
        return Finding(name, without_names(str(error), case.case_id), State.NOTE)
    except MamamiaError as error:
        return Finding(name, without_names(str(error), case.case_id), State.FAILED)
    text = (
        f"expected {done.expected} tumour voxels of {done.voxels}, got {done.got}; "
        f"{done.differing} differ, {done.near} of them too close to call, {done.seconds:.2f} s"
    )
    return Finding(name, text, State.OK if done.passed else State.FAILED)
