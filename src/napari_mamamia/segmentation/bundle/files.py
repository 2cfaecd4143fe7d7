"""Find and read the files of a MONAI bundle: its folder, configs and weights."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.json_text import parsed_json
from napari_mamamia.segmentation.bundle.config import References
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles, join_path

_METADATA: Final = ("configs", "metadata.json")
_RUNS: Final = ("configs/inference.json", "configs/inference.yaml", "configs/inference.yml")
_WEIGHTS: Final = ("models/model.ts", "models/model.pt")
_REPAIR: Final = "correct the bundle, or ask its author"


def bundle_root(files: ModelFiles) -> str:
    """Return the bundle's folder inside `files`, or "" if it is `files` itself.

    Raises
    ------
    ModelError
        If there is no bundle, or several bundles.
    """
    roots = [
        str(PurePosixPath(name).parent.parent)
        for name in files.names
        if PurePosixPath(name).parts[-2:] == _METADATA
    ]
    if len(roots) != 1:
        raise ModelError(
            f"expected {files.path} to contain one MONAI bundle, but found {len(roots)}; choose "
            "the folder of one of them"
        )
    return "" if roots[0] == "." else roots[0]


def read_metadata(files: ModelFiles) -> Mapping[str, Any]:
    """Return the content of metadata.json; raise `ModelError` if it cannot be read."""
    return _parse_config(files, join_path(bundle_root(files), "/".join(_METADATA)))


def read_inference(files: ModelFiles) -> References:
    """Return the values in inference.json or .yaml; raise `ModelError` if neither exists."""
    names = config_names(files)[1:]
    if not names:
        raise ModelError(
            f"expected {files.path} to have {_RUNS[0]} (the description of how the bundle is "
            f"run), but it is missing; {_REPAIR}"
        )
    return References(_parse_config(files, names[0]), f"{files.path}/{names[0]}")


def config_names(files: ModelFiles) -> tuple[str, ...]:
    """Return the names of metadata.json and of the file that describes the run, if they exist."""
    root = bundle_root(files)
    runs = (join_path(root, run) for run in _RUNS)
    names = [name for name in runs if name in files.names]
    return (join_path(root, "/".join(_METADATA)), *names[:1])


def bundle_weights(files: ModelFiles) -> str:
    """Return the name of the file that contains the network, or "" if there is none.

    A TorchScript network is preferred, because it needs no MONAI class.
    """
    root = bundle_root(files)
    return next(
        (join_path(root, name) for name in _WEIGHTS if join_path(root, name) in files.names), ""
    )


def _parse_config(files: ModelFiles, name: str) -> Mapping[str, Any]:
    """Return the content of a config file.

    YAML is read with its safe loader, which creates only data.
    """
    where = f"{files.path}/{name}"
    text = files.text(name)
    try:
        config = parsed_json(text) if name.endswith(".json") else _from_yaml(text, where)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"cannot read the config {where}: {error}; {_REPAIR}") from error
    if not isinstance(config, Mapping):
        raise ModelError(
            f"expected {where} to be an object with named values, but it is a "
            f"{type(config).__name__}; {_REPAIR}"
        )
    return config


def _from_yaml(text: str, where: str) -> Any:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError as error:
        raise ModelError(
            f"reading the config {where} needs the package PyYAML; install PyYAML, or write the "
            "config as inference.json"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
