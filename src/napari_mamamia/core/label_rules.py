"""`LabelRule`: how one value of a mask file is mapped."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelRule:
    """How one value of a source is mapped.

    `source` is the value in the file, `target` the value written (0: left out), `name` its meaning,
    such as ``"tumour"``. `masks` names the masks that the rule is for; "" for all.

    Raises
    ------
    ValueError
        If `target` is not 0 to 255, or `source` is 0, which is always background.
    """

    source: float
    target: int
    name: str
    masks: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.target <= 255:
            raise ValueError(f"expected a label value of 0 to 255, got {self.target}")
        if self.source == 0:
            raise ValueError("value 0 is background in every mask: remove its rule")
