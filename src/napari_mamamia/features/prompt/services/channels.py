"""The images of a case that a prompt model can see."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from napari_mamamia.core.case import Case
from napari_mamamia.core.counting import phase_name
from napari_mamamia.core.errors import CaseError, Remedy
from napari_mamamia.core.progress import report_progress
from napari_mamamia.services.dicom.preview import SlicePicture

SUBTRACTION: Final = "subtraction"
POST: Final = "post"
_PICTURE_SIDE: Final = 128


@dataclass(frozen=True, slots=True)
class Channel:
    """An image for the model: phase `plus`, from which phase `minus` is subtracted if it is set."""

    name: str
    text: str
    plus: int
    minus: int | None = None


def list_channels(case: Case) -> tuple[Channel, ...]:
    """Return the images of a case that a prompt model can see, with the default first.

    They are the first subtraction ("subtraction"), the first post-contrast phase ("post"), and each
    phase by its number ("0", "1", ...).
    """
    count, first = len(case.phases), case.n_before
    names = [phase_name(index, first) for index in range(count)]
    phases = [Channel(str(index), names[index], index) for index in range(count)]
    if not 0 < first < count:
        return tuple(phases)
    return (
        Channel(SUBTRACTION, f"{names[first]} - {names[first - 1]}", first, first - 1),
        Channel(POST, names[first], first),
        *phases,
    )


def choose_channel(case: Case, name: str = "") -> Channel:
    """Return the channel of a case with a given name, or the default channel.

    Raises
    ------
    CaseError
        If the case has no channel with this name.
    """
    channels = list_channels(case)
    if not name and channels:
        return channels[0]
    for channel in channels:
        if channel.name == name:
            return channel
    names = ", ".join(channel.name for channel in channels)
    raise CaseError(
        f"expected one of the images {names} of {case.case_id}, but found {name!r}",
        remedies=(Remedy("channel", ("NAME",)),),
    )


def draw_channels(case: Case) -> tuple[SlicePicture, ...]:
    """Return a picture of the middle slice for each channel in `list_channels`.

    The brightest 0.5 % of the pixels are white; in a subtraction, no enhancement is black.
    """
    frame = case.grid.display_frame()
    height, width = (case.grid.shape[axis] * case.grid.spacing_mm[axis] for axis in frame.order[1:])
    pictures = []
    for channel in list_channels(case):
        planes = [
            _cut_middle(frame.to_display(case.signal[phase]))
            for phase in (channel.plus, channel.minus)
            if phase is not None
        ]
        plane = planes[0] if len(planes) == 1 else planes[0] - planes[1]
        low = 0.0 if channel.minus is not None else float(plane.min())
        high = float(np.percentile(plane, 99.5))
        grey = np.clip((plane - low) / ((high - low) or 1.0), 0, 1) * 255
        pictures.append(SlicePicture(grey.astype(np.uint8), height, width))
    return tuple(pictures)


def _cut_middle(planes: NDArray[Any]) -> NDArray[np.float32]:
    """Return every n-th pixel of the middle plane, so that no side has more than 128 pixels."""
    step = max(1, -(-max(planes.shape[1:]) // _PICTURE_SIDE))
    return np.nan_to_num(planes[len(planes) // 2, ::step, ::step].astype(np.float32))


class ChannelImage:
    """The voxels of a channel, computed on first use in any thread; `array` is ``(z, y, x)``.

    Raises
    ------
    CaseError
        On first use, if a voxel is not finite or all voxels are equal; a prompt model would
        silently return an empty mask for such an image.
    """

    def __init__(self, case: Case, channel: Channel) -> None:
        self.case = case
        self.channel = channel

    @cached_property
    def array(self) -> NDArray[Any]:
        """Return the voxels: float32 for a subtraction, otherwise in the data type of the phase."""
        report_progress(0, 1, "Preparing the image")
        channel, signal = self.channel, self.case.signal
        array: NDArray[Any] = signal[channel.plus]
        if channel.minus is not None:
            array = np.subtract(array, signal[channel.minus], dtype=np.float32, casting="unsafe")
        self._require_usable(array)
        return array

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 of the voxels, in their order and data type."""
        return hashlib.sha256(np.ascontiguousarray(self.array).data).hexdigest()

    def _require_usable(self, array: NDArray[Any]) -> None:
        where = f"{self.channel.text} of {self.case.case_id}"
        if array.dtype.kind not in "iuf":
            raise CaseError(f"expected numbers in {where}, but found {array.dtype}")
        low, high = array.min(), array.max()  # NaN if any voxel is NaN
        if not (np.isfinite(low) and np.isfinite(high)):
            n_bad = int(np.count_nonzero(~np.isfinite(array)))
            raise CaseError(
                f"expected finite numbers in {where}, but found {n_bad} voxels that are not: "
                "choose another image",
                remedies=(Remedy("channel", ("NAME",)),),
            )
        if low == high:
            raise CaseError(
                f"expected an image in {where}, but all voxels are {low}: choose another image",
                remedies=(Remedy("channel", ("NAME",)),),
            )
