"""Make the weights of the learned brush from nothing.

    python tools/train_brush --sarcomas FOLDER --out brush.safetensors

FOLDER holds `STS_002/PET_image.nii.gz` and so on: `ibsi_validation/nifti` of
github.com/theibsi/data_sets. The same steps on one machine with one thread give the same bits.
A checkpoint is written every 50 steps; the same command goes on from it. `--device cuda` trains on
a GPU.
"""

import argparse
import copy
import pickle
import time
from pathlib import Path

import numpy as np
import torch
from hands import Episode, fill_circle, make_noisy
from network import EditNetwork
from safetensors.torch import save_file
from torch import Tensor
from worlds import World, check_sum, make_worlds

from napari_mamamia.smartpaint.learned.patch import MASK

BATCH, LIVE = 16, 64
"""Presses of a step, and lesions that are being corrected at one time."""
RATE, WARM_UP, DECAY = 2e-3, 100, 1e-4
STAGES = (1100, 1800)
"""Last step with a careless hand, and with the hand of a reader who means to press well."""
FALLING = 0.3
"""Share of the steps of a stage, the last ones, in which the rate falls to a fiftieth."""
FIRST_ROUND = 350
"""Steps in which a noisy truth corrects the masks; from then on the network itself does."""
SPHERES = 0.1
"""Share of the presses that a plain sphere answers, as where a reader changes the tool."""
AVERAGE = 0.998
NEAR, NEAR_WEIGHT = 1.3, 3.0
EVERY = 50


class Trainer:
    """The network, its average, its optimiser and the lesions that are being corrected."""

    def __init__(self, worlds: list[World], seed: int) -> None:
        torch.manual_seed(seed)
        self.step = 0
        self.rng = np.random.default_rng([seed, 37])
        self.network = EditNetwork().to(memory_format=torch.channels_last_3d)
        self.average = copy.deepcopy(self.network)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), RATE, weight_decay=DECAY)
        self.episodes = [Episode(worlds, self.rng) for _ in range(LIVE)]
        self.losses: list[tuple[float, float, float]] = []

    def advance(self, worlds: list[World], device: str) -> None:
        """Make one step with one press on each of `BATCH` lesions."""
        first = self.step * BATCH % LIVE
        presses = []
        for number in range(first, first + BATCH):
            self.episodes[number].is_careful = self.step >= STAGES[0]
            press = self.episodes[number].press()
            while press is None:
                self.episodes[number] = Episode(worlds, self.rng)
                self.episodes[number].is_careful = self.step >= STAGES[0]
                press = self.episodes[number].press()
            presses.append(press)
        episodes = self.episodes[first : first + BATCH]
        turns = [_draw_turn(self.rng) for _ in presses]
        patch, target, away = (
            torch.from_numpy(
                np.stack([_turn(p[k], turn) for p, turn in zip(presses, turns, strict=True)])
            ).to(device)
            for k in range(3)
        )
        patch = patch.to(memory_format=torch.channels_last_3d)
        for group in self.optimiser.param_groups:
            group["lr"] = _rate(self.step)
        logits = self.network(patch)
        cross, overlap, before = _measure_loss(logits, target, away, patch)
        self.optimiser.zero_grad(set_to_none=True)
        (cross + overlap).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        share = min(AVERAGE, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for mean, now in zip(self.average.parameters(), self.network.parameters(), strict=True):
                mean.lerp_(now, 1 - share)
        self.losses.append((cross.item(), overlap.item(), before))
        answers = logits.detach().cpu().numpy()
        is_first = self.step < FIRST_ROUND
        for answer, episode, press, turn in zip(answers, episodes, presses, turns, strict=True):
            if self.rng.random() < SPHERES:
                episode.follow(fill_circle(episode))
            elif is_first:
                episode.follow(make_noisy(press[1], self.rng))
            else:
                episode.follow(_turn_back(answer, turn))
        self.step += 1


def _measure_loss(
    logits: Tensor, target: Tensor, away: Tensor, patch: Tensor
) -> tuple[Tensor, Tensor, float]:
    """Return cross-entropy, 1 - Dice near the circle, and 1 - Dice of the mask before."""
    near = (away <= NEAR).float()
    weight = 1 + (NEAR_WEIGHT - 1) * near
    cross = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, weight)
    chance = torch.sigmoid(logits) * near
    truth = target * near

    def miss(values: Tensor) -> Tensor:
        both = (values * truth).sum((1, 2, 3))
        sums = (values + truth).sum((1, 2, 3))
        return (1 - (2 * both + 1) / (sums + 1)).mean()

    return cross, miss(chance), miss((patch[:, MASK] > 0).float() * near).item()


def _rate(step: int) -> float:
    if step < WARM_UP:
        return RATE * (step + 1) / WARM_UP
    first = 0 if step < STAGES[0] else STAGES[0]
    last = STAGES[0] if step < STAGES[0] else STAGES[1]
    return RATE * max(0.02, min(1.0, (last - step) / (FALLING * (last - first))))


def _draw_turn(rng: np.random.Generator) -> tuple[bool, bool, bool, bool]:
    flips = rng.random(4) < 0.5
    return bool(flips[0]), bool(flips[1]), bool(flips[2]), bool(flips[3])


def _turn(values: np.ndarray, turn: tuple[bool, bool, bool, bool]) -> np.ndarray:
    """Return a cube mirrored along its last axes, then with rows and columns exchanged."""
    axes = [axis - 3 for axis in range(3) if turn[axis]]
    values = np.flip(values, axes)
    return np.ascontiguousarray(values.swapaxes(-1, -2) if turn[3] else values)


def _turn_back(values: np.ndarray, turn: tuple[bool, bool, bool, bool]) -> np.ndarray:
    values = values.swapaxes(-1, -2) if turn[3] else values
    return np.ascontiguousarray(np.flip(values, [axis - 3 for axis in range(3) if turn[axis]]))


def main() -> None:
    """Train, write checkpoints and, at the end, the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sarcomas", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=37)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    stored = given.out.with_suffix(".worlds")
    if not stored.exists():
        stored.write_bytes(pickle.dumps(make_worlds(given.sarcomas)))
    worlds = pickle.loads(stored.read_bytes())
    print(f"{len(worlds)} lesions, check sum {check_sum(worlds)}", flush=True)
    checkpoint = given.out.with_suffix(".checkpoint")
    trainer = Trainer(worlds, given.seed)
    if checkpoint.exists():
        trainer = pickle.loads(checkpoint.read_bytes())
    trainer.network.to(given.device)
    trainer.average.to(given.device)
    begun = time.perf_counter()
    while trainer.step < STAGES[-1]:
        trainer.advance(worlds, given.device)
        if trainer.step % 50 == 0:
            cross, overlap, before = np.mean(trainer.losses[-50:], axis=0)
            print(
                f"{trainer.step} {time.perf_counter() - begun:.0f} s: cross-entropy {cross:.4f}, "
                f"Dice near the circle {1 - before:.3f} > {1 - overlap:.3f}",
                flush=True,
            )
        if trainer.step % EVERY == 0:
            part = checkpoint.with_suffix(".part")
            part.write_bytes(pickle.dumps(trainer))
            part.replace(checkpoint)
            save_weights(trainer, given.out)
    save_weights(trainer, given.out)


def save_weights(trainer: Trainer, path: Path) -> None:
    """Write the averaged weights."""
    weights = {
        name: value.detach().cpu().contiguous()
        for name, value in trainer.average.state_dict().items()
    }
    save_file(weights, path, {"steps": str(trainer.step), "of": str(STAGES[-1])})


if __name__ == "__main__":
    main()
