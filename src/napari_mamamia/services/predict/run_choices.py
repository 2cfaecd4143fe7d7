"""The user's settings for running a model, as plain values."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import Rung


@dataclass(frozen=True, slots=True)
class RunChoices:
    """The user's settings for running a model; the defaults are nnU-Net's own and exact.

    Parameters
    ----------
    device
        "auto", "cpu", "cuda" or "mps".
    backend
        The runtime: "torch", "openvino", or "auto" for the runtime of the model's format.
    folds, step, mirroring
        As in `EngineSettings`.
    postprocessing
        Whether to apply the recipe's postprocessing steps.
    limit_s, give_up
        As in `Budget`.
    fast
        Whether to use bf16, which is less exact and recorded in the provenance.
    recipe
        A preset's name or a file; "" for the model's own.
    threads
        Number of CPU threads; None for torch's default.
    keep_probability
        Whether to return the probability map.
    """

    device: str = "auto"
    backend: str = "auto"
    folds: tuple[str, ...] = ()
    step: float = 0.5
    mirroring: bool = True
    postprocessing: bool = True
    limit_s: float | None = None
    give_up: tuple[Rung, ...] = ()
    fast: bool = False
    recipe: str = ""
    threads: int | None = None
    keep_probability: bool = False

    def settings(self) -> EngineSettings:
        """Return the settings for the engine."""
        return EngineSettings(
            folds=self.folds,
            step=self.step,
            mirroring=self.mirroring,
            device=self.device,
            backend=self._chosen_backend(),
            precision="bf16" if self.fast else "fp32",
            threads=self.threads,
            keep_probability=self.keep_probability,
        )

    def _chosen_backend(self) -> str:
        if self.backend != "auto":
            return self.backend
        from importlib.util import find_spec

        fits = self.fast and self.device in ("auto", "cpu") and find_spec("openvino") is not None
        has_card = self.device == "auto" and any(Path("/dev").glob("nvidia[0-9]*"))
        return "openvino" if fits and not has_card else "torch"
