"""The classifiers feature: scoring, stacking, table audits and splits, and lesion detection."""

from typing import Final

from napari_mamamia.core.features import Command, Feature

_FOCAL: Final = "napari_mamamia.features.classifiers.scoring.detection.focal"
FEATURE: Final = Feature(
    name="classifiers",
    summary="classifiers, their tables, and lesion detection",
    commands=(
        Command(
            "score-classifier",
            "napari_mamamia.features.classifiers.cli.classifier:score_classifier",
            "Score classifiers: AUC, operating points, and comparisons of models and a reader.",
            "Scores",
        ),
        Command(
            "score-detection",
            "napari_mamamia.features.classifiers.cli.detection:score_detection",
            "Score detected lesions (FROC, raFROC, precision, patient level): OUT/detection.json.",
            "Scores",
        ),
        Command(
            "stack",
            "napari_mamamia.features.classifiers.cli.classifier:stack",
            "Combine the scores of several models into one score, by nested cross-validation.",
            "Scores",
        ),
        Command(
            "audit",
            "napari_mamamia.features.classifiers.cli.classifier:audit",
            "Find metadata that leaks the label or the split.",
            "Scores",
        ),
        Command(
            "split",
            "napari_mamamia.features.classifiers.cli.classifier:split",
            "Split the patients of a table into parts with balanced strata.",
            "Scores",
        ),
    ),
    library={
        "Detections": "napari_mamamia.features.classifiers.library:Detections",
        "score_detection": "napari_mamamia.features.classifiers.library:score_detection",
        "FocalLoss": f"{_FOCAL}:FocalLoss",
        "risk_adjusted_focal": f"{_FOCAL}:risk_adjusted_focal",
    },
    docs=("howto/classifiers.md", "howto/classifier_data.md", "howto/detection.md"),
)
