"""The card of a single-file network before it is loaded, with its recipe."""

from dataclasses import replace

from napari_mamamia.core.errors import ModelError
from napari_mamamia.core.provenance import Setting
from napari_mamamia.segmentation.model.card import RECIPE_NAME, ModelCard, licence_text, summed
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS
from napari_mamamia.segmentation.model.network_spec import NetworkSpec
from napari_mamamia.segmentation.model.nnunet_files import ModelFiles
from napari_mamamia.segmentation.model.recipe import recipe_from
from napari_mamamia.segmentation.network.files import (
    find_network,
    fitted_spec,
    network_path,
    without_recipe,
)
from napari_mamamia.segmentation.network.shapes import own_spec


def network_card(files: ModelFiles, kind: str, checksums: bool) -> ModelCard:
    """Return the card of a single-file network, completed by the recipe next to it.

    Parameters
    ----------
    files
        The files of the model.
    kind
        The kind of model.
    checksums
        Whether to compute the SHA-256 of the weights.
    """
    network_files = find_network(files, kind)
    card = ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        is_zip=files.is_zip,
        licence=licence_text(files, ""),
        weights=tuple(summed(files, network_files.sizes, checksums)),
        missing=network_files.missing,
        has_recipe=network_files.has_recipe,
    )
    spec = None
    try:
        if network_files.has_recipe:
            spec = recipe_from(files.text(RECIPE_NAME), f"{files.path}: {RECIPE_NAME}").network
        if spec is None and not network_files.missing:
            spec = own_spec(network_path(files.path, network_files.sizes[0][0]), kind)
        if spec is not None:
            return with_network(card, spec)
    except ModelError as error:
        return replace(card, missing=(*card.missing, str(error)))
    return replace(card, missing=card.missing or (without_recipe(files.path, kind),))


def with_network(card: ModelCard, spec: NetworkSpec | None) -> ModelCard:
    """Return the card of a network with the `spec` of a recipe; None keeps the card unchanged.

    Parameters
    ----------
    card
        The card of the model.
    spec
        Input and output of the network, or None.

    Raises
    ------
    ModelError
        If the recipe contradicts the file, or this kind of model states its input itself.
    """
    if spec is None:
        return card
    if card.kind not in NETWORK_KINDS:
        raise ModelError(
            f"{card.path} is of the kind {card.kind}, which states its input and output "
            'itself; leave the section "network" out of its recipe'
        )
    missing = tuple(
        reason for reason in card.missing if reason != without_recipe(card.path, card.kind)
    )
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
