"""Aggregation rules of a federated server: w' = sum of p_k w_k, with weights p_k that sum to 1.

Each function ``*_shares`` returns the clients' weights by one rule. `mix_shares` averages weights,
and `mix_tensors` averages tensors. The docstrings state the result where a formula is undefined,
for example at a distance of 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Shares: TypeAlias = NDArray[np.float64]
"""Weight of each client, (k,); the sum is 1."""

Tensors: TypeAlias = Mapping[str, NDArray[np.float64]]
"""A model's tensors by name, as in a saved state."""

_CUT_PERCENT: Final = 80.0
_MOMENTUM: Final = 0.9
_NO_SPEED: Final[Tensors] = MappingProxyType({})


def case_shares(n_cases: Sequence[float]) -> Shares:
    """Return each client's share of the cases, N_k / N (federated averaging, FedAvg).

    Examples
    --------
    >>> case_shares([10, 30, 60]).tolist()
    [0.1, 0.3, 0.6]
    """
    return scale_shares(np.asarray(n_cases, dtype=np.float64))


def scale_shares(values: NDArray[np.float64]) -> Shares:
    """Divide values by their sum; return equal weights if all values are 0.

    Raises
    ------
    ValueError
        If there is no value, or a value is negative or not finite.
    """
    values = np.asarray(values, dtype=np.float64)
    if not values.size or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"expected finite values of 0 or more for each client, got {values}")
    total = values.sum()
    return values / total if total > 0 else np.full(values.shape, 1 / values.size)


def loss_shares(n_cases: Sequence[float], losses: Sequence[float]) -> Shares:
    """Return weights proportional to cases times the loss after local training (FLSTAR)."""
    return scale_shares(case_shares(n_cases) * np.asarray(losses, dtype=np.float64))


def ratio_shares(before: Sequence[float], after: Sequence[float]) -> Shares:
    """Return weights by the ratio of losses after and before local training (gauravsingh, -DSC).

    A loss of 0 before training is refused, because the ratio is undefined.
    """
    if not np.all(np.asarray(before)):
        raise ValueError("expected a loss above 0 before training, got 0")
    return scale_shares(np.asarray(after, dtype=np.float64) / np.asarray(before, dtype=np.float64))


def distance_shares(values: NDArray[np.float64]) -> Shares:
    """Return weights by the inverse L1 distance of each client's values (k, ...) to their mean.

    A client at distance 0 gets all the weight; several such clients share it equally.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    return _invert_distances(np.abs(flat - flat.mean(axis=0)).sum(axis=1))


def element_shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights by inverse distance for each element separately, (k, ...) (RoFL)."""
    values = np.asarray(values, dtype=np.float64)
    distances = np.abs(values - values.mean(axis=0)).reshape(len(values), -1)
    columns = [_invert_distances(column) for column in distances.T]
    return np.stack(columns, axis=1).reshape(values.shape)


def sanctuary_shares(
    n_cases: Sequence[float], values: NDArray[np.float64], dsc: Sequence[float]
) -> Shares:
    """Return weights by cases x 1 / L1 distance x 1 / local DSC of a tensor (Sanctuary).

    Clients at distance 0 share all the weight by the other two factors. A DSC of 0 is refused.
    """
    quality = np.asarray(dsc, dtype=np.float64)
    if not (quality > 0).all():
        raise ValueError(f"expected a local DSC above 0 for each client, got {quality}")
    return scale_shares(case_shares(n_cases) * distance_shares(values) / quality)


def pid_shares(
    n_cases: Sequence[float],
    losses: NDArray[np.float64],
    weights: tuple[float, float, float],
) -> Shares:
    """Return the weights a P + b D + c I from losses (rounds, clients) (FedPIDAvg, rigg).

    The newest losses are last. P is the number of cases, D the decrease of the loss in the last
    round (0 for an increase), and I the sum of the last five losses. The paper does not state a, b
    and c; they are scaled to a sum of 1. If no loss decreased, or there is only one round, only P
    counts.
    """
    losses = np.asarray(losses, dtype=np.float64)
    plain = case_shares(n_cases)
    fell = np.maximum(losses[-2] - losses[-1], 0) if len(losses) > 1 else np.zeros(plain.shape)
    if not fell.any():
        return plain
    terms = (plain, scale_shares(fell), scale_shares(losses[-5:].sum(axis=0)))
    return mix_shares(terms, weights)


def mix_shares(terms: Sequence[Shares], weights: Sequence[float] | None = None) -> Shares:
    """Return the mean of several weightings, optionally with a weight for each.

    HT-TUAS is the mean of `case_shares` and `distance_shares`, gauravsingh the mean of
    `case_shares` and `ratio_shares`.
    """
    mixed = np.average(np.stack(terms), axis=0, weights=weights)
    return scale_shares(mixed)


def mix_tensors(clients: Sequence[Tensors], shares: Shares) -> Tensors:
    """Return the average of the clients' tensors with one weight for each client.

    Raises
    ------
    ValueError
        If clients differ in tensor names or shapes, or the number of weights is wrong.
    """
    _require_alike(clients, len(shares))
    return {
        name: np.tensordot(shares, np.stack([client[name] for client in clients]), axes=1)
        for name in clients[0]
    }


def clip_and_mix(
    clients: Sequence[Tensors],
    shares: Shares,
    previous: Tensors,
    percent: float = _CUT_PERCENT,
) -> Tensors:
    """Average the clients' updates, each clipped at a percentile, and apply them (FeTS).

    The clipping limit of a tensor is the percentile of all its absolute differences over all
    clients.
    """
    _require_alike([*clients, previous], len(shares) + 1)
    mixed = {}
    for name, before in previous.items():
        apart = np.stack([client[name] for client in clients]) - before
        cut = np.percentile(np.abs(apart), percent)
        mixed[name] = before + np.tensordot(shares, np.clip(apart, -cut, cut), axes=1)
    return mixed


@dataclass(frozen=True, slots=True)
class MomentumServer:
    """The state of a server with momentum between rounds (FedAvgM).

    V' = momentum x V + (w - mix), w' = w - rate x V', for tensors named *weight or *bias. Other
    tensors, and all tensors in the first round, are only averaged.
    """

    momentum: float = _MOMENTUM
    rate: float = 1.0
    tensors: Tensors | None = None
    speeds: Tensors = field(default_factory=lambda: _NO_SPEED)

    def take(self, clients: Sequence[Tensors], shares: Shares) -> "MomentumServer":
        """Return the server after a round."""
        mixed = mix_tensors(clients, shares)
        if self.tensors is None:
            return replace(self, tensors=mixed)
        tensors, speeds = dict(mixed), dict(self.speeds)
        for name, before in self.tensors.items():
            if name.endswith(("weight", "bias")):
                speed = self.momentum * speeds.get(name, np.zeros_like(before))
                speeds[name] = speed + before - mixed[name]
                tensors[name] = before - self.rate * speeds[name]
        return replace(self, tensors=tensors, speeds=speeds)


@dataclass(frozen=True, slots=True)
class AdamServer:
    """The state of a server that uses the averaged update as Adam's gradient (RoFL).

    Source: S. J. Reddi et al., Adaptive Federated Optimization, ICLR 2021, Algorithm 2.
    """

    tensors: Tensors
    rate: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-3
    means: Tensors = field(default_factory=lambda: _NO_SPEED)
    squares: Tensors = field(default_factory=lambda: _NO_SPEED)

    def take(self, clients: Sequence[Tensors], shares: Shares) -> "AdamServer":
        """Return the server after a round."""
        mixed = mix_tensors(clients, shares)
        tensors, means, squares = {}, {}, {}
        for name, before in self.tensors.items():
            step, zero = mixed[name] - before, np.zeros_like(before)
            means[name] = self.beta1 * self.means.get(name, zero) + (1 - self.beta1) * step
            square = self.beta2 * self.squares.get(name, zero) + (1 - self.beta2) * step**2
            squares[name] = square
            tensors[name] = before + self.rate * means[name] / (np.sqrt(square) + self.epsilon)
        return replace(self, tensors=tensors, means=means, squares=squares)


def quick_clients(times_s: Sequence[float], share: float = 0.75) -> tuple[int, ...]:
    """Return the indices of clients within `share` of the mean time (Sanctuary, odd rounds).

    If there is no such client, all indices are returned.
    """
    times = np.asarray(times_s, dtype=np.float64)
    quick = np.flatnonzero(times <= share * times.mean())
    return tuple(quick.tolist() or range(len(times)))


def _invert_distances(distances: NDArray[np.float64]) -> Shares:
    at_mean = distances == 0
    if at_mean.any():
        shares: Shares = at_mean / at_mean.sum()
        return shares
    return scale_shares(1 / distances)


def _require_alike(clients: Sequence[Tensors], n_shares: int) -> None:
    shapes = [{name: np.shape(values) for name, values in client.items()} for client in clients]
    if not clients or len(clients) != n_shares or any(shape != shapes[0] for shape in shapes):
        raise ValueError(
            f"expected tensors of the same names and shapes from each of {n_shares} client(s), got "
            f"{len(clients)}: {shapes[:2]}"
        )
