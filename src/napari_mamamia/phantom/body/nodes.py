"""Lymph nodes in the armpits: round, early and strongly enhancing, beside the chest and high up.

Number, places and sizes are our choice: what a radiologist would not take for a breast tumour, but
a rule for enhancement and shape does.
"""

from dataclasses import dataclass

import numpy as np

from napari_mamamia.phantom.body.anatomy import Body, Breast
from napari_mamamia.phantom.body.points import Bounds
from napari_mamamia.phantom.spec import PhantomSpec
from napari_mamamia.phantom.streams import Part, stream


@dataclass(frozen=True, slots=True)
class Node:
    """An ellipsoid: RAS mm of its centre, and its radii along right, anterior and superior."""

    centre_mm: tuple[float, float, float]
    radii_mm: tuple[float, float, float]

    @property
    def bounds_mm(self) -> Bounds:
        """A box that holds the node and a margin for partial volume."""
        x, y, z = (
            (c - r - 3.0, c + r + 3.0) for c, r in zip(self.centre_mm, self.radii_mm, strict=True)
        )
        return (x, y, z)


def lay_nodes(spec: PhantomSpec, body: Body) -> tuple[Node, ...]:
    """Return the nodes of both armpits, each between ribs and skin."""
    rng = stream(spec.seed, Part.NODES)
    return tuple(
        _make_node(body, breast, rng) for breast in body.breasts for _ in range(spec.nodes)
    )


def _make_node(body: Body, breast: Breast, rng: np.random.Generator) -> Node:
    chest = body.chest
    aside, height = float(rng.uniform(98.0, 126.0)), float(rng.uniform(40.0, 85.0))
    radii = rng.uniform((3.5, 4.5, 5.0), (6.0, 8.0, 9.5))
    across = aside / chest.half_width_mm
    ribs = chest.centre_y_mm + chest.half_depth_mm * float(np.sqrt(1 - across**2))
    out = 0.5 * chest.fat_mm
    y = ribs - chest.lean * height + out * float(rng.uniform(0.6, 1.2))
    rx, ry, rz = (float(radius) for radius in radii)
    return Node((breast.outward * (aside + out), y, height), (rx, ry, rz))
