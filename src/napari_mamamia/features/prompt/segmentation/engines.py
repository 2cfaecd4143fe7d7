"""The engines of this program: models on this computer, and nnInteractive on a server."""

import ipaddress
import json
import os
import sys
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from napari_mamamia.core.errors import CaseError, MissingExtraError, ModelError, Remedy
from napari_mamamia.core.program.child_environment import child_environment
from napari_mamamia.core.program.child_process import answer_of
from napari_mamamia.features.prompt.segmentation.engine import (
    EngineSettings,
    EngineSpec,
    PlainConnectionError,
    PromptEngine,
    engines_registry,
)
from napari_mamamia.features.prompt.segmentation.process import WorkerEngine
from napari_mamamia.features.prompt.segmentation.recipe import RECIPE_NAME, read_prompt_recipe
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.segmentation.model.card import licence_text
from napari_mamamia.segmentation.model.device import require_onnx, require_torch
from napari_mamamia.segmentation.model.kinds import ModelKind, kind_of
from napari_mamamia.segmentation.model.nnunet_files import open_files
from napari_mamamia.segmentation.network.card import list_weight_files

ENVIRONMENT: Final = "MAMAMIA_PROMPT_ENVIRONMENT"
"""Environment variable that names the Python environment in which nnInteractive is installed."""

_WORKER: Final = str(Path(__file__).with_name("worker.py"))
_PYTHONS: Final = ("bin/python", "Scripts/python.exe", "python.exe")
_CLIENT: Final = "nninteractive-client"
_CHECK_S: Final = 120.0
_ANSWER_S: Final = 1800.0
"""Seconds to wait for a server's answer; without a graphics card, a prompt takes minutes."""
_REMOTE_BYTES: Final = 12 * 10**9
"""Memory limit, in bytes, of the process that decodes server answers; an image needs 1 GB."""


def find_python(environment: Path | None) -> Path:
    """Return the Python interpreter of an environment, or of the one in the variable `ENVIRONMENT`.

    Raises
    ------
    CaseError
        If there is no interpreter.
    """
    chosen = environment or (Path(text) if (text := os.environ.get(ENVIRONMENT)) else None)
    if chosen is not None:
        candidates = [chosen, *(chosen / name for name in _PYTHONS)]
        for candidate in candidates:
            if candidate.is_file():
                return Path(os.path.abspath(candidate))  # noqa: PTH100 - the link is the environment
    found = "none was named" if chosen is None else f"found none at {chosen}"
    raise CaseError(
        f"expected a Python environment with the package nninteractive, but {found}: create one "
        f"and choose it, or set {ENVIRONMENT}",
        remedies=(Remedy("environment", ("DIR",)),),
    )


def check_environment(python: Path) -> tuple[str, str]:
    """Return the version of nnInteractive in an environment, and why it does not work, or ""."""
    answer = answer_of((str(python), "-I", _WORKER, "check"), _CHECK_S)
    try:
        return str(json.loads(answer.said.splitlines()[-1])["version"]), ""
    except (ValueError, LookupError, TypeError):
        lines = answer.errors.strip().splitlines() or [answer.problem or "it printed nothing"]
        return "", lines[-1][:300]


def _make_local(settings: EngineSettings) -> PromptEngine:
    """Make the engine for a model on this computer: one with a recipe, or else nnInteractive."""
    folder = settings.model
    if folder is not None and (folder / RECIPE_NAME).is_file():
        return _make_network(folder.resolve(), settings)
    python = find_python(settings.environment)
    if folder is None or not (folder / "plans.json").is_file():
        found = "none was named" if folder is None else f"{folder} has neither"
        raise CaseError(
            "expected the folder of a prompt model, with plans.json and fold_0, or with "
            f"{RECIPE_NAME}, but {found}",
            remedies=(Remedy("model", ("DIR",)),),
        )
    folder = folder.resolve()
    fold, weights = _find_weights(folder, settings.fold)
    digest = sha256_of(weights)
    order = {
        "do": "open_local",
        "root": str(Path(__file__).parents[3]),
        "model": str(folder),
        "fold": fold,
        "device": settings.device,
        "threads": _count_threads(),
    }
    return WorkerEngine(
        (str(python), "-I", _WORKER, "0"),
        _without(child_environment(HF_HUB_OFFLINE="1"), "PROXY"),
        order,
        lambda release: (f"nnInteractive {release}", f"sha256:{digest}"),
        _name_model(folder.name),
    )


def _count_threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", "") or os.cpu_count() or 1)


def _name_model(name: str) -> str:
    """Return a noun phrase that names a model; many model folders are called "model"."""
    return f"the prompt model in the folder {name}"


def _make_network(folder: Path, settings: EngineSettings) -> PromptEngine:
    """Make an engine that runs a recipe's TorchScript or ONNX file in a process of this Python."""
    recipe = read_prompt_recipe(folder / RECIPE_NAME)
    weights = folder / recipe.file
    files = open_files(weights)
    kind = kind_of(files)
    if kind not in (ModelKind.TORCHSCRIPT, ModelKind.ONNX):
        raise ModelError(
            f"expected {weights} to be TorchScript or ONNX, but it is {kind.value}: export the "
            "network to one of them"
        )
    require_torch()
    if kind is ModelKind.ONNX:
        require_onnx()
    names = (RECIPE_NAME, recipe.file, *list_weight_files(weights, kind))
    digest = sha256("\n".join(sha256_of(folder / name) for name in names).encode()).hexdigest()
    stated = licence_text(open_files(folder), "").strip()
    order = {
        "do": "open_network",
        "root": str(Path(__file__).parents[3]),
        "recipe": str(folder / RECIPE_NAME),
        "weights": str(weights),
        "kind": kind.value,
        "licence": recipe.licence or stated.partition("\n")[0],
        "device": settings.device,
        "threads": _count_threads(),
    }
    return WorkerEngine(
        (sys.executable, "-P", _WORKER, "0"),
        _without(child_environment(), "PROXY"),
        order,
        lambda title: (title, f"sha256:{digest}"),
        _name_model(folder.name),
    )


def _find_weights(folder: Path, fold: str) -> tuple[str, Path]:
    """Return the fold and the path of its checkpoint."""
    names = [path.name.removeprefix("fold_") for path in sorted(folder.glob("fold_*"))]
    chosen = fold or (names[0] if len(names) == 1 else "")
    for suffix in (".pth", ".safetensors"):
        path = folder / f"fold_{chosen}" / f"checkpoint_final{suffix}"
        if chosen in names and path.is_file():
            return chosen, path
    raise ModelError(
        f"expected fold_{chosen or 'N'}/checkpoint_final.pth in {folder}, but found the folds "
        f"{', '.join(names) or 'none'}: choose one of them",
        remedies=(Remedy("fold", ("N",)),),
    )


def is_loopback(server: str) -> bool:
    """Return whether a server address refers to this computer."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_server(server: str, *, allow_plain_http: bool = False) -> str:
    """Check the address of a server, and return it without a trailing slash.

    Raises
    ------
    CaseError
        If `server` is not a valid address.
    PlainConnectionError
        If images would be sent over the network without encryption and this is not allowed.
    """
    address = urlsplit(server)
    try:
        _ = address.port
        is_address = address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        is_address = False
    if not is_address or address.username is not None or address.query or address.fragment:
        raise CaseError(
            f"expected the address of a server, such as https://host:1527, but found "
            f"{server[:100]!r}: name the server that runs nninteractive-server",
            remedies=(Remedy("server", ("URL",)),),
        )
    if address.scheme == "http" and not is_loopback(server) and not allow_plain_http:
        raise PlainConnectionError(
            f"expected an encrypted connection (https) to {address.hostname}, but found http: "
            "anybody on the network path can read and change the images; use https or a tunnel, "
            "or confirm the unencrypted connection",
            remedies=(Remedy("allow_plain_http"),),
        )
    return server.rstrip("/")


def _make_remote(settings: EngineSettings) -> PromptEngine:
    """Make an engine that uses nnInteractive on a server."""
    server = check_server(settings.server, allow_plain_http=settings.allow_plain_http)
    try:
        version(_CLIENT)
    except PackageNotFoundError as error:
        raise MissingExtraError(_CLIENT, "prompt") from error
    variables = child_environment()
    variables.pop("NN_INTERACTIVE_API_KEY", None)
    if is_loopback(server):
        variables = _without(variables, "PROXY")
    order = {
        "do": "open_remote",
        "server": server,
        # Not None: the client would take the key of an environment variable.
        "api_key": settings.api_key,
        "seconds": _ANSWER_S,
    }
    return WorkerEngine(
        (sys.executable, "-P", _WORKER, str(_REMOTE_BYTES)),
        variables,
        order,
        lambda release: (f"nnInteractive {release}", server),
        f"the server {server}",
    )


def _without(variables: dict[str, str], word: str) -> dict[str, str]:
    return {name: value for name, value in variables.items() if word not in name.upper()}


def _describe_leaving(settings: EngineSettings) -> str:
    where = "a server program on this computer" if is_loopback(settings.server) else "the server"
    return (
        f"The image (one 3-D volume of this case, without names), your prompts and your mask are "
        f"sent to {where} {settings.server}."
    )


PROMPT_ENGINES: Final = engines_registry(
    EngineSpec(
        "local",
        "nnInteractive, or a model with a recipe, on this computer",
        _make_local,
        lambda _: "",
    ),
    EngineSpec("remote", "nnInteractive on a server", _make_remote, _describe_leaving),
)
"""All prompt engines by name; packages add engines in the group `napari_mamamia.prompt_engines`."""
