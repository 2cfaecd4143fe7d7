"""Choose the device (CPU or GPU) and the number of threads for a network."""

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from napari_mamamia.core.choices import Device
from napari_mamamia.core.errors import MissingExtraError, ModelError
from napari_mamamia.core.names import count_of

DEVICES: Final = tuple(Device)
_GPU: Final = re.compile(r"cuda:\d{1,2}")

_NO_MEMORY: Final = (
    "out of memory",
    "can't allocate",
    "ALLOC_FAILED",
    # cuDNN also raises these errors if memory is insufficient; nnU-Net also retries after each of
    # them.
    "CUDNN_STATUS_NOT_SUPPORTED",
    "valid cuDNN algorithm",
    "Unable to find an engine",
)
_OF_DEVICE: Final = ("CUDA error", "cuDNN", "CUDNN_STATUS", "CUBLAS_STATUS", "HIP error", "MPS ")


def require_torch() -> None:
    """Raise `MissingExtraError` unless torch and the packages for networks are installed."""
    for package in ("torch", "dynamic_network_architectures"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "segment")


def require_onnx() -> None:
    """Raise `MissingExtraError` unless onnxruntime is installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise MissingExtraError("onnxruntime", "onnx")


def require_openvino() -> None:
    """Raise `MissingExtraError` unless openvino is installed."""
    if importlib.util.find_spec("openvino") is None:
        raise MissingExtraError("openvino", "openvino")


def require_monai() -> None:
    """Raise `MissingExtraError` unless monai is installed."""
    if importlib.util.find_spec("monai") is None:
        raise MissingExtraError("monai", "bundle")


def is_device(name: str) -> bool:
    """Return whether a name is in `DEVICES`, or is a numbered GPU such as ``cuda:1``."""
    return name in DEVICES or _GPU.fullmatch(name) is not None


def choose_device(wanted: str = "auto") -> str:
    """Return ``"cuda"``, ``"mps"`` or ``"cpu"``; ``"auto"`` selects the first available device.

    ``"cuda:1"`` makes the second GPU torch's current ``"cuda"`` device.

    Raises
    ------
    ModelError
        If a device that is chosen by name is not available, or the name is unknown.
    MissingExtraError
        If torch is not installed.
    """
    if not is_device(wanted):
        raise ModelError(
            f"expected the device to be one of {', '.join(DEVICES)} or cuda:N, but got {wanted!r}"
        )
    require_torch()
    present = _list_devices()
    device, _, number = wanted.partition(":")
    device = present[0] if device == Device.AUTO else device
    if device not in present:
        raise ModelError(
            f"expected the device {wanted} to be available, but torch finds only "
            f"{', '.join(present)}; choose auto or cpu, or install a torch version that matches "
            "the GPU and its driver"
        )
    if device == "cuda":
        _use_gpu(int(number or 0))
    return device


def _use_gpu(number: int) -> None:
    import torch

    count = int(torch.cuda.device_count())
    if number >= count:
        raise ModelError(
            f"expected the device cuda:{number} to exist, but torch finds "
            f"{count_of(count, 'GPU')}, numbered from 0; choose one of them, or auto"
        )
    torch.cuda.set_device(number)


@contextmanager
def convolutions_tuned(device: str) -> Iterator[None]:
    """Let cuDNN choose its algorithms by measurement inside the block, as nnU-Net does."""
    import torch

    cudnn = torch.backends.cudnn
    before = cudnn.benchmark
    cudnn.benchmark = device == "cuda" or before
    try:
        yield
    finally:
        cudnn.benchmark = before


def usual_threads() -> int:
    """Return the default number of threads for a network: all cores but one, at least one.

    One core is left for the window, because threads that wait for each other use a whole core if
    all cores are busy.
    """
    return max((os.cpu_count() or 1) - 1, 1)


def free_bytes(device: str) -> int | None:
    """Return the free memory of a GPU in bytes, or None if unknown."""
    if device != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info()
    return int(free)


def sums_on(device: str, needed_bytes: int) -> str:
    """Return the device on which to sum outputs: a GPU if its memory is large enough.

    Parameters
    ----------
    device
        The device: ``"cpu"``, ``"cuda"`` or ``"mps"``.
    needed_bytes
        The memory that the sums need in bytes.
    """
    free = free_bytes(device)
    return device if free is not None and needed_bytes < free / 2 else "cpu"


def release_memory(device: str) -> None:
    """Release memory that torch has reserved on the GPU but does not use."""
    import torch

    if device == "cuda":
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error, or its cause, was caused by insufficient memory.

    torch raises most of these errors as plain `RuntimeError`.
    """
    torch = sys.modules.get("torch")  # kinds that run without it do not need it installed
    kinds = (MemoryError,) if torch is None else (MemoryError, torch.OutOfMemoryError)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, kinds):
            return True
        if isinstance(cause, RuntimeError) and any(text in str(cause) for text in _NO_MEMORY):
            return True
        cause = cause.__cause__
    return False


def is_device_failure(error: BaseException) -> bool:
    """Return whether an error was caused by the GPU or its driver, and not by the network."""
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OF_DEVICE)


@contextmanager
def threads_set(threads: int | None) -> Iterator[int]:
    """Set torch's number of threads inside the block; None leaves it unchanged."""
    import torch

    before = int(torch.get_num_threads())
    if threads is not None and threads != before:
        torch.set_num_threads(threads)
    try:
        yield int(torch.get_num_threads())
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


def _list_devices() -> tuple[str, ...]:
    import torch

    devices = []
    if torch.cuda.is_available():
        devices.append("cuda")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return (*devices, "cpu")
