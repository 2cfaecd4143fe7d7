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
    """Settings of a submission's run.

    Parameters
    ----------
    task
        The task of the submission: masks, responses or both.
    express
        Number of cases that are run first, before all others; a failure in one of them stops the
        run.
    express_seconds
        Time limit for each of these cases; None for the limit of every case.
    limits
        Limits for one case.
    together
        Whether all cases are run in one process, as in the challenge.
    isolation
        The isolation; None takes the best available one, and NONE needs `consent`.
    consent
        Whether the user agrees to a run without isolation if none is available.
    image
        Container image, for isolation by docker or podman.
    python
        The Python interpreter with the submission's packages; None for the current one.
    as_root
        Whether the root user may run the submission.
    cuda_on_processor
        Whether requests for the CUDA device are run on the CPU.
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
    """Raise `ModelError` if a submission requests CUDA by name and there is no GPU."""
    if submission.asks_for_cuda and not settings.cuda_on_processor and not has_graphics_card():
        raise ModelError(
            f"{submission.name} requests CUDA by name ({submission.asks_for_cuda}), but this "
            "computer has no NVIDIA graphics card: run it on one that has, or on the processor, "
            "which is slow",
            remedies=(Remedy("cuda_on_processor"),),
        )


def choose_isolation(settings: SubmissionSettings) -> tuple[Isolation, tuple[str, ...]]:
    """Return the isolation for the submission, and why better kinds are not available.

    Raises
    ------
    ModelError
        If there is neither isolation nor consent, the requested isolation does not work, or the
        user is root and root is not allowed.
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
