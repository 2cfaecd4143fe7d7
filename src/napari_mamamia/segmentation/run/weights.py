"""What a model on the disk is, found out from names and small texts; nothing of it is executed."""

from dataclasses import replace
from pathlib import Path, PurePosixPath

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.io.files.foreign import reads
from napari_mamamia.segmentation.bundle.card import describe_bundle
from napari_mamamia.segmentation.model.card import (
    RECIPE_NAME,
    ModelCard,
    licence_text,
    summed,
)
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind, kind_of
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles, open_files
from napari_mamamia.segmentation.model.recipe import recipe_from
from napari_mamamia.segmentation.network.files import (
    find_network,
    fitted_spec,
    network_path,
    without_recipe,
)
from napari_mamamia.segmentation.network.shapes import own_spec
from napari_mamamia.segmentation.nnunet.card import (
    last_stages,
    nnunet_card,
    nnunet_card_at,
    trained_folders,
)


@reads("a readable model", "copy it again from where it came from", ModelError)
def recognise_model(path: Path, *, inner: str | None = None, checksums: bool = True) -> ModelCard:
    """Return what the model at `path` is.

    Parameters
    ----------
    path
        A folder, a zip or a single file.
    inner
        Which of several models below `path`, by its folder's relative name with ``/``.
    checksums
        Whether the weights' SHA-256 are computed; it takes about a second for each GB.

    Raises
    ------
    ModelError
        If nothing is there, a zip is refused, a text is broken, or several models are below `path`
        and `inner` names none of them.
    """
    files = open_files(path)
    roots = list(trained_folders(files))
    if inner is not None and (inner or roots):
        return nnunet_card_at(files, inner, checksums)
    roots = last_stages(files, roots)
    if len(roots) > 1:
        raise ModelError(
            f"one model should be at {path}, but there are {len(roots)}: {', '.join(roots)}. "
            "Choose the folder of one of them"
        )
    if roots:
        return nnunet_card(files, roots[0], checksums)
    return _other_card(files, checksums)


def with_network(card: ModelCard, spec: NetworkSpec | None) -> ModelCard:
    """Return the card of a network for which a recipe gives `spec`; None keeps what is known.

    Raises
    ------
    ModelError
        If the recipe contradicts the file, or the kind of model says itself what it takes.
    """
    if spec is None:
        return card
    if card.kind not in NETWORK_KINDS:
        raise ModelError(
            f"{card.path} is of the kind {card.kind.value}, which says itself what it takes and "
            'gives: leave the section "network" out of its recipe'
        )
    missing = tuple(said for said in card.missing if said != without_recipe(card.path, card.kind))
    if not missing:
        name = card.weights[0].name
        spec = fitted_spec(spec, network_path(card.path, name), card.kind)
    patch = " x ".join(map(str, spec.patch))
    facts: tuple[tuple[str, Setting], ...] = (
        ("patch", patch),
        ("output", spec.output.value),
        ("orientation", spec.orientation or "as stored"),
    )
    return replace(
        card,
        channels=spec.channels,
        labels=tuple((label, (value,)) for label, value in spec.labels),
        missing=missing,
        facts=facts,
        network=spec,
    )


def _other_card(files: ModelFiles, checksums: bool) -> ModelCard:
    kind = kind_of(files)
    if kind in NETWORK_KINDS:
        return _network_card(files, kind, checksums)
    if kind is ModelKind.MONAI_BUNDLE:
        return _bundle_card(files, checksums)
    missing: tuple[str, ...] = ()
    if kind is ModelKind.NNUNET_V1:
        missing = (
            f"{files.path} is a model of nnU-Net v1 (plans.pkl): a pickle can run any program and "
            "v1's networks differ. Train or convert it with nnU-Net v2",
        )
    elif kind is ModelKind.CHECKPOINT:
        missing = (
            f"{files.path} holds weights or objects that torch.save wrote, not a network: what "
            "computes with them is in its author's program. Export the network there (ONNX, "
            "torch.export or TorchScript), or store its weights as safetensors if it is one of "
            "nnU-Net's networks",
        )
    elif kind is ModelKind.UNKNOWN:
        missing = (
            f"{files.path} should be a model (an nnU-Net v2 folder with plans.json, dataset.json "
            "and fold_0/checkpoint_final.pth, its zip, a MONAI bundle, TorchScript, torch.export, "
            "ONNX or safetensors file), but none was recognised: choose another folder or file",
        )
    heavy = [item for item in files.sizes if _is_weight(item[0])]
    return ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=licence_text(files, ""),
        weights=tuple(summed(files, heavy, checksums)),
        missing=missing,
        has_recipe=any(PurePosixPath(name).name == RECIPE_NAME for name in files.names),
    )


def _network_card(files: ModelFiles, kind: ModelKind, checksums: bool) -> ModelCard:
    """Return the card of a network in one file, with what the recipe beside it says."""
    found = find_network(files, kind)
    card = ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=licence_text(files, ""),
        weights=tuple(summed(files, found.sizes, checksums)),
        missing=found.missing,
        has_recipe=found.has_recipe,
    )
    spec = None
    try:
        if found.has_recipe:
            spec = recipe_from(files.text(RECIPE_NAME), f"{files.path}: {RECIPE_NAME}").network
        if spec is None and not found.missing:
            spec = own_spec(network_path(files.path, found.sizes[0][0]), kind)
        if spec is not None:
            return with_network(card, spec)
    except ModelError as error:
        return replace(card, missing=(*card.missing, str(error)))
    return replace(card, missing=card.missing or (without_recipe(files.path, kind),))


def _bundle_card(files: ModelFiles, checksums: bool) -> ModelCard:
    """Return the card of a MONAI bundle; its configs count among the files that are summed."""
    found = describe_bundle(files)
    deciding = [item for item in files.sizes if item[0] in found.files]
    return ModelCard(
        path=files.path,
        kind=ModelKind.MONAI_BUNDLE,
        name=found.name,
        is_zip=files.is_zip,
        channels=found.channels,
        labels=found.labels,
        licence=licence_text(files, found.root) or found.licence,
        weights=tuple(summed(files, deciding, checksums)),
        missing=found.missing,
        facts=found.facts,
        has_recipe=RECIPE_NAME in files.names,
    )


def _is_weight(name: str) -> bool:
    suffixes = {".pth", ".pt", ".ts", ".pt2", ".onnx", ".bin", ".safetensors", ".model"}
    return PurePosixPath(name).suffix.lower() in suffixes
