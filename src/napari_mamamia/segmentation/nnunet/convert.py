"""Convert a checkpoint to safetensors, and check it against the network in the plans."""

from dataclasses import replace
from pathlib import Path

from napari_mamamia.core.errors import ModelError
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.segmentation.model.nnunet_plans import read_plans
from napari_mamamia.segmentation.nnunet.checkpoint import load_checkpoint
from napari_mamamia.segmentation.nnunet.network import build_network, put_weights
from napari_mamamia.segmentation.nnunet.safetensors import write_safetensors


def rewrite(
    source: Path, checkpoint: Path, target: Path, plans: str, dataset: str, configuration: str
) -> tuple[int, str]:
    """Convert a checkpoint to safetensors; return the number of tensors and the file's SHA-256.

    Names and shapes must match the network in the plans. The new file is read again and compared
    bit for bit. Conversion takes about a second for each 100 MB.

    Parameters
    ----------
    source
        The file to read: the checkpoint, or the file that a sandbox extracted from it.
    checkpoint
        The checkpoint.
    target
        The new file.
    plans, dataset
        Contents of the model's plans.json and dataset.json.
    configuration
        Configuration in the name of the model's folder; "" if there is none.

    Raises
    ------
    RefusedCheckpointError
        If opening the checkpoint would run code.
    ModelError
        If the checkpoint is damaged, or does not match the plans.
    SaveError
        If the new file cannot be written.
    """
    content = replace(load_checkpoint(source), path=checkpoint)
    if configuration and content.configuration not in ("", configuration):
        raise ModelError(
            f"expected {checkpoint} to have the configuration {configuration} of its folder, but "
            f"it has {content.configuration}; copy the checkpoint to the matching folder"
        )
    model = str(checkpoint.parents[1])
    spec = read_plans(plans, dataset, content.configuration or configuration, model)
    network = build_network(
        spec.configuration.architecture, spec.inputs, spec.labels.heads, content.trainer, model
    )
    put_weights(network, content)
    digest = sha256_of(checkpoint)
    return write_safetensors(content, target, digest), digest
