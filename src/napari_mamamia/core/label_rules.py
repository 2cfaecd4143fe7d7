"""`LabelRule`: one value of a mask file, and what becomes of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One value of a source and what becomes of it.

    `source` is the value in the file, `target` the value written (0: left out), `name` what it is,
    such as ``"tumour"``. `masks` names the masks that the rule is for; "" for all.

    Raises
    ------
    ValueError
        If `target` is not 0 to 255, or `source` is 0, which is background everywhere.
    """

    source: float
    target: int
    name: str
    masks: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.target <= 255:
            raise ValueError(f"a label value must be 0 to 255, got {self.target}")
        if self.source == 0:
            raise ValueError("value 0 is background in every mask: leave its rule out")
