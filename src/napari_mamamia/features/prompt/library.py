"""`mm.prompt`: mark a lesion of a case with a prompt model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from napari_mamamia.core.case import Mask
from napari_mamamia.core.errors import ArgumentError
from napari_mamamia.features.prompt.segmentation.engine import EngineInfo, EngineSettings
from napari_mamamia.features.prompt.segmentation.prompts import Prompt
from napari_mamamia.features.prompt.services.prompt_case import prompt_case
from napari_mamamia.features.prompt.services.settings import accept_licence as store_acceptance
from napari_mamamia.features.prompt.services.settings import require_accepted
from napari_mamamia.library.argument_words import advising_arguments
from napari_mamamia.library.arguments import PathLike, path_of
from napari_mamamia.library.case import Case
from napari_mamamia.library.progress import drive


@dataclass(frozen=True, slots=True)
class Prompted:
    """A mask made from prompts, with the model, the model's licence, and notes."""

    mask: Mask
    model: str
    licence: str
    notes: tuple[str, ...] = ()


@advising_arguments
def prompt(
    case: Case,
    prompts: Sequence[Prompt],
    *,
    model: PathLike | None = None,
    server: str = "",
    channel: str = "",
    reader: str = "",
    fold: str = "",
    environment: PathLike | None = None,
    device: str = "auto",
    api_key: str = "",
    allow_plain_http: bool = False,
    accept_licence: bool = False,
    progress: bool = True,
) -> Prompted:
    """Mark a lesion of a case with a prompt model, on this computer or on a server.

    With `server`, one image of the case, the prompts and the mask are sent to the server.

    Parameters
    ----------
    case
        The case, such as ``data_set["ID"]``.
    prompts
        One or more ``mm.Prompt(kind, points, include)``, in the order in which they are applied.
    model, fold, environment, device
        For a model on this computer: the model's folder, its fold, the Python environment in which
        ``nninteractive`` is installed, and the device ("auto", "cpu" or "cuda").
    server, api_key, allow_plain_http
        The server's address, its API key, and whether images may be sent without encryption.
    channel
        The image that the model sees: "subtraction" (the default), "post" (the first post-contrast
        phase), or the number of a phase, such as "2".
    reader
        The reader whose mask in the workspace is edited and saved; if "", nothing is saved.
    accept_licence
        Whether you accept the model's licence; acceptance is stored for later calls.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Prompted
        The result: ``.mask`` is a `Mask`, and ``.licence`` is the model's licence.

    Raises
    ------
    ArgumentError
        If not exactly one of `model` and `server` is passed, or `case` has the wrong type.
    CaseError
        If a prompt is empty or outside the image, or the image cannot be used.
    ModelError
        If the model fails, or its licence was not accepted.

    Examples
    --------
    >>> prompts = [mm.Prompt("point", [(31, 120, 88)])]  # doctest: +SKIP
    >>> mm.prompt(case, prompts, model="nnInteractive_v1.0").mask.volume_mm3  # doctest: +SKIP
    1934.0
    """
    if not isinstance(case, Case):
        raise ArgumentError(
            f"expected a case, but got {type(case).__name__}: pass a case such as "
            '`data_set["DUKE_001"]`'
        )
    if bool(model) == bool(server):
        raise ArgumentError("expected exactly one of model and server: pass one of them")
    settings = EngineSettings(
        None if model is None else path_of(model, "model"),
        fold,
        None if environment is None else path_of(environment, "environment"),
        device,
        server,
        api_key,
        allow_plain_http,
    )

    def check(info: EngineInfo) -> None:
        if accept_licence:
            store_acceptance(info)
        require_accepted(info)

    outcome = drive(
        partial(
            prompt_case,
            case.read(),
            tuple(prompts),
            "remote" if server else "local",
            settings,
            channel=channel,
            workspace=case.context.workspace if reader else None,
            reader=reader,
            on_info=check,
        ),
        progress,
        starts_processes=True,
    )
    info = outcome.info
    mask = outcome.labels.mask()
    return Prompted(mask, f"{info.name}, {info.model}", info.licence, outcome.notes)
