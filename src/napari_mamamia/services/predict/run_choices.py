"""How a person wants a model to run: what was typed or clicked, as plain values."""

from dataclasses import dataclass
from pathlib import Path

from napari_mamamia.segmentation.model.engine_settings import EngineSettings
from napari_mamamia.segmentation.model.planner import Rung


@dataclass(frozen=True, slots=True)
class RunChoices:
    """How a person wants a model to run; the defaults are nnU-Net's own and exact.

    Parameters
    ----------
    device
        "auto", "cpu", "cuda" or "mps".
    backend
        "torch", "openvino", or "auto": what the model's format is made for (torch; ONNX Runtime;
        OpenVINO), and OpenVINO where bf16 was asked for on a processor and it is installed.
    folds, step, mirroring
        As in `EngineSettings`.
    postprocessing
        Whether the recipe's steps after the network are done.
    limit_s, give_up
        As in `Budget`.
    fast
        Whether bf16 is used, which is not exact and is recorded.
    recipe
        A preset's name or a file; "" for the model's own.
    threads
        Of the processor; None leaves it to torch.
    keep_probability
        Whether the probability map is wanted.
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
        """Return them as the engine takes them."""
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
        return "openvino" if fits and not _has_card(self.device) else "torch"


def _has_card(device: str) -> bool:
    """Whether "auto" may mean a graphics card: its driver shows a device file."""
    return device == "auto" and any(Path("/dev").glob("nvidia[0-9]*"))
