"""Rule that maps a value of a mask file to a written value (`LabelRule`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelRule:
    """How one value of a mask file is mapped to a written value.

    `source` is the value in the file, `target` is the written value (0 omits the label), and `name`
    is its meaning, such as ``"tumour"``. `masks` names the masks to which the rule applies, or is
    "" for all masks.

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
            raise ValueError(
                f"expected the target label to be from 0 to 255, but it is {self.target}"
            )
        if self.source == 0:
            raise ValueError(
                "expected the source value not to be 0, which is background in every "
                "mask: remove this rule"
            )
