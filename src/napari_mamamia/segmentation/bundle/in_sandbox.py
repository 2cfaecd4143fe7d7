"""The ``model.py`` of a submission that runs a MONAI bundle, including code in the bundle.

``mamamia models wrap`` copies this file next to the bundle and its ``wrap.json``. The program runs
in a sandbox with a Python that has MONAI, and executes the expressions and pickles in the bundle.
It does not import napari_mamamia.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_BUNDLE = _HERE / "bundle"


class Model:
    """A MONAI bundle with the model interface of the challenge."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.wrap = json.loads((_HERE / "wrap.json").read_text("utf-8"))

    def predict_segmentation(self, output_dir: str) -> str:
        """Write the mask of each case on the grid of its first image; return the output folder."""
        import torch

        folder = Path(output_dir, "pred_segmentations")
        folder.mkdir(parents=True, exist_ok=True)
        sys.path.insert(0, str(_BUNDLE))
        parser, keys = _make_parser()
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network = _load_network(parser).to(device).eval()
        before = parser.get_parsed_content("preprocessing")
        after = parser.get_parsed_content("postprocessing")
        inferer = parser.get_parsed_content("inferer")
        for case_id in self.dataset.get_patient_id_list():
            phases = self.dataset.get_dce_mri_path_list(case_id)
            files = [phases[number] for number in self.wrap["phases"]]
            named = {keys[0]: files} if len(keys) == 1 else dict(zip(keys, files, strict=True))
            data = before(named)
            with torch.no_grad():
                data["pred"] = inferer(data["image"][None].to(device), network)[0]
            _save_mask(
                after(data)["pred"], files[0], folder / f"{case_id}.nii.gz", self.wrap["labels"]
            )
        return str(folder)


def _make_parser() -> tuple[Any, list[str]]:
    """Return MONAI's parser for the bundle's config without writers, and the keys of its images."""
    from monai.bundle import ConfigParser

    paths = [_BUNDLE / "configs" / f"inference.{kind}" for kind in ("json", "yaml", "yml")]
    parser = ConfigParser()
    parser.read_config(str(next(path for path in paths if path.is_file())))
    parser["bundle_root"] = str(_BUNDLE)
    parser["output_dir"] = tempfile.gettempdir()
    steps = parser["postprocessing"]["transforms"]
    parser["postprocessing"]["transforms"] = [
        step for step in steps if not step["_target_"].rpartition(".")[2].startswith("SaveImage")
    ]
    keys = parser["preprocessing"]["transforms"][0].get("keys", "image")
    return parser, [keys] if isinstance(keys, str) else list(keys)


def _load_network(parser: Any) -> Any:
    import torch

    script = _BUNDLE / "models" / "model.ts"
    if script.is_file():
        return torch.jit.load(str(script), map_location="cpu")
    network = parser.get_parsed_content("network_def")
    path = _BUNDLE / "models" / "model.pt"
    stored = torch.load(path, map_location="cpu", weights_only=False)
    for name in ("model", "state_dict", "network"):
        if isinstance(stored, dict) and name in stored:
            stored = stored[name]
    network.load_state_dict(stored.state_dict() if hasattr(stored, "state_dict") else stored)
    return network


def _save_mask(prediction: Any, image: str, path: Path, labels: list[int]) -> None:
    import numpy as np
    from monai.data import NibabelWriter
    from monai.transforms import LoadImage

    outputs = np.asarray(prediction.cpu() if hasattr(prediction, "cpu") else prediction)
    chosen = np.isin(outputs[0], labels) if len(outputs) == 1 else outputs[labels].any(axis=0)
    like = LoadImage(image_only=True)(image)
    if chosen.shape != tuple(like.shape[:3]):
        raise ValueError(
            "expected the bundle to return its result on the image's grid "
            f"{tuple(like.shape[:3])}, but the result has shape {chosen.shape}; add Invertd to "
            "its postprocessing"
        )
    writer = NibabelWriter(output_dtype=np.uint8)
    writer.set_data_array(chosen.astype(np.uint8), channel_dim=None)
    writer.set_metadata({"affine": like.affine}, resample=False)
    writer.write(str(path))
