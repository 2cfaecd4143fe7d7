"""Conversion of a checkpoint to a safetensors file, checked against the plans' network."""

from dataclasses import dataclass, replace
from pathlib import Path

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.segmentation.model.nnunet_plans import read_plans
from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights
from napari_mamamia.segmentation.nnunet.safetensors import write_safetensors


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The input of a conversion.

    `source` is the checkpoint (or the file that a sandbox made of it, and `given` is then the
    checkpoint), `target` the new file; `plans` and `dataset` are the texts of the model's files,
    `configuration` that of the model's folder, "" if its name does not give it.
    """

    source: Path
    given: Path
    target: Path
    plans: str
    dataset: str
    configuration: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Number of tensors in the new file, and the SHA-256 of the checkpoint."""

    tensors: int
    source_sha256: str


def rewrite(wanted: Rewriting) -> Rewritten:
    """Convert a checkpoint to safetensors.

    Names and shapes must be those of the plans' network. The new file is read again and compared
    bit for bit. It takes about a second for each 100 MB.

    Raises
    ------
    RefusedCheckpointError
        If opening it would run code.
    ModelError
        If it is damaged, or does not fit the plans.
    SaveError
        If it cannot be written.
    """
    content = replace(load_checkpoint(wanted.source), path=wanted.given)
    if wanted.configuration and content.configuration not in ("", wanted.configuration):
        raise ModelError(
            f"expected {wanted.given} to have the configuration {wanted.configuration} of its "
            f"folder's name, but it has {content.configuration}; copy it to the folder to which "
            "it belongs"
        )
    configuration = content.configuration or wanted.configuration
    plans = read_plans(wanted.plans, wanted.dataset, configuration, str(wanted.given.parents[1]))
    network = build_network(
        plans.configuration.architecture,
        plans.inputs,
        plans.labels.heads,
        content.trainer,
        str(wanted.given.parents[1]),
    )
    put_weights(network, content)
    digest = sha256_of(wanted.given)
    return Rewritten(write_safetensors(content, wanted.target, digest), digest)
