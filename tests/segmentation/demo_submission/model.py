"""A submission as teams write them: paths of the challenge's container, one class `Model`."""

import json
import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd

# both ways to name one's own folder, as the published submissions have them
WEIGHTS = "/app/ingested_program/demo_code_submission/weights.json"
SIZES = Path("/app/ingested_program") / "sizes.json"
DEVICE = "cuda"


class Model:
    def __init__(self, dataset):
        self.dataset = dataset
        self.device = DEVICE if os.path.exists("/dev/nvidiactl") else "cpu"  # noqa: PTH110
        self.rise = json.loads(Path(WEIGHTS).read_text())["rise"]
        self.large_ml = json.loads(SIZES.read_text())["large_ml"]
        self.predicted_segmentations = None

    def predict_segmentation(self, output_dir):
        folder = os.path.join(output_dir, "pred_segmentations")  # noqa: PTH118
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        for patient_id in self.dataset.get_patient_id_list():
            pre, post = (nib.load(p) for p in self.dataset.get_dce_mri_path_list(patient_id)[:2])
            rise = np.asarray(post.dataobj, dtype=np.float32) - np.asarray(pre.dataobj)
            mask = (rise > self.rise).astype(np.uint8)
            image = nib.Nifti1Image(mask, pre.affine, pre.header)
            image.set_data_dtype(np.uint8)
            nib.save(image, f"{folder}/{patient_id}.nii.gz")
        print("segmented on", self.device)  # noqa: T201
        self.predicted_segmentations = folder
        return folder

    def predict_classification(self, output_dir):
        rows = []
        for patient_id in self.dataset.get_patient_id_list():
            image = nib.load(f"{self.predicted_segmentations}/{patient_id}.nii.gz")
            volume_ml = np.asarray(image.dataobj).sum() * abs(np.linalg.det(image.affine)) / 1000
            score = float(min(volume_ml / (2 * self.large_ml), 1.0))
            rows.append({"patient_id": patient_id, "pcr": int(score > 0.5), "score": score})
        return pd.DataFrame(rows)
