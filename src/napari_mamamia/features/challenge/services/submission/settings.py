"""Settings of a submission's run, and the choice of its isolation."""

from dataclasses import dataclass, field
from pathlib import Path

from napari_mamamia.core.choices import IsolationKind, Task
from napari_mamamia.core.errors import ModelError, Remedy
from napari_mamamia.segmentation.sandbox.external import Submission
from napari_mamamia.segmentation.sandbox.isolation import (
    CHALLENGE_IMAGE,
    Isolation,
    find_isolation,
    has_graphics_card,
    require_no_root,
)
from napari_mamamia.segmentation.sandbox.limits import RunLimits


@dataclass(frozen=True, slots=True)
class SubmissionSettings:
    """How a submission is run.

    Parameters
    ----------
    task
        The task of the submission: masks, responses or both.
    express
        Number of cases that are run first, before all others; a failure in one of them stops the
        run.
    express_seconds
        Time limit for each of them; None: as for every case.
    limits
        Limits for one case.
    together
        Whether all cases are run in one process, as in the challenge.
    isolation
        None takes the best that works here; NONE needs `consent`.
    consent
        Whether the user agrees to run it without isolation if none is available.
    image
        Container image, for isolation by docker or podman.
    python
        The Python with the packages of the submission; None: the one that runs this software.
    as_root
        Whether root may run it.
    cuda_on_processor
        Whether requests for the device CUDA are run on the processor.
    """

    task: Task = Task.BOTH
    express: int = 3
    express_seconds: float | None = None
    limits: RunLimits = field(default_factory=RunLimits)
    together: bool = False
    isolation: IsolationKind | None = None
    consent: bool = False
    image: str = CHALLENGE_IMAGE
    python: Path | None = None
    as_root: bool = False
    cuda_on_processor: bool = False


def require_device(submission: Submission, settings: SubmissionSettings) -> None:
    """Raise `ModelError` if a submission requests CUDA by name and there is no graphics card."""
    if submission.asks_for_cuda and not settings.cuda_on_processor and not has_graphics_card():
        raise ModelError(
            f"{submission.name} requests CUDA by name ({submission.asks_for_cuda}), but this "
            "computer has no NVIDIA graphics card: run it on one that has, or on the processor, "
            "which is slow",
            remedies=(Remedy("cuda_on_processor"),),
        )


def choose_isolation(settings: SubmissionSettings) -> tuple[Isolation, tuple[str, ...]]:
    """Return the isolation for the submission, and why better ones do not work here.

    Raises
    ------
    ModelError
        If there is no isolation and no consent, the requested one does not work, or the user is
        root and root is not allowed.
    """
    require_no_root(as_root=settings.as_root)
    chosen_kind = settings.isolation
    no_sandbox = Isolation(IsolationKind.NONE)
    if chosen_kind is IsolationKind.NONE and settings.consent:
        return no_sandbox, ()
    kinds = tuple(IsolationKind)[:-1] if chosen_kind is None else (chosen_kind,)
    tried: tuple[str, ...] = ()
    for kind in kinds:
        check = find_isolation((kind,), settings.image)
        if check.usable:
            return check.usable[0], tried
        tried += check.reasons
    if chosen_kind is None and settings.consent:
        return no_sandbox, tried
    reasons = "; ".join(tried) or "running without isolation was requested"
    raise ModelError(
        f"expected a sandbox for the submission, an untrusted program, but found none ({reasons}): "
        "install bubblewrap, or agree that it can read, change and send everything that you can",
        remedies=(Remedy("consent_no_isolation"),),
    )
