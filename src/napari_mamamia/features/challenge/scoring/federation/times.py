"""Simulate the duration of federated rounds, from statistics of the first real federation.

The tables (mean and SD in s) are those of FeTS-AI/Challenge, commit 1c122653.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_SEED: Final = 0xFEEDFACE
_LEAST_S: Final = 1.0
"""Minimum duration of a step in s."""

# for one patient: validation (mean, SD), training (mean, SD)
_MACHINES: Final = (
    (23.129135113591072, 2.5975116854269507, 6.710741331207654, 0.8726112813698301),
    (12.965544041450777, 0.3476297824941513, 2.7343911917098445, 0.023976155580152165),
    (14.782051282051283, 0.5262660449172765, 3.173076923076923, 0.04154320960517865),
    (16.444936708860762, 0.42613177203005187, 6.580379746835443, 0.22461890673025595),
    (15.728654970760235, 4.327559980390658, 3.452046783625731, 0.47136389322749656),
    (12.946098012884802, 0.2449927822869217, 6.090788461700995, 0.08541499003440205),
    (15.335950126991456, 1.1587597276712558, 3.206933911159263, 0.1927067498514361),
    (24.024875621890544, 3.087348297794285, 3.3358208955223883, 0.2950567549663471),
    (38.361702127659576, 2.240113332190875, 4.391304347826087, 0.37464538999161057),
    (16.320970580839827, 0.4995108101783225, 6.324805129494594, 0.1413885448869165),
    (30.805555555555554, 3.1836337269688237, 7.415133477633478, 1.1198881747151301),
    (12.100899742930592, 0.41122386959584895, 5.806410256410255, 0.029926699295169234),
    (13.099897540983607, 0.6693132795197584, 6.300204918032787, 0.24932319729777577),
    (9.690202702702702, 0.17513593019922968, 5.886317567567567, 0.018627858809133223),
    (10.06980802792321, 0.7947848617875114, 5.478184991273998, 0.04902740607167421),
    (14.605333333333334, 0.6012305898922827, 6.32440159574468, 0.15838847558954935),
    (36.30294396961064, 9.24123672148819, 20.661918328585003, 6.085405543890793),
    (16.9130060292851, 0.7452868131028928, 3.197901325478645, 0.07049966132127056),
    (40.244078460399706, 3.7700993678269037, 6.523963730569948, 0.2533266757118492),
    (13.161603102779575, 0.1975347910041472, 2.6540077569489338, 0.025503099659276184),
    (11.222161868549701, 0.7021223062972527, 1.8025746183640918, 0.06805805332403576),
)
# for one model: download (mean, SD), upload (mean, SD)
_NETWORKS: Final = (
    (112.42869743589742, 14.456734719659513, 192.28497409326425, 21.537450985376967),
    (117.26870618556701, 12.549951446132013, 194.60103626943004, 24.194406902237056),
    (13.059666666666667, 4.8700489616521185, 20.0, 0.0),
    (47.50220338983051, 14.92128656898884, 52.43859649122807, 5.047207127169352),
    (162.27864210526315, 32.562113378948396, 182.82417582417582, 14.793519078918195),
    (99.46072058823529, 13.808785580783224, 143.38059701492537, 7.910690646792151),
    (33.6347090909091, 25.00299299660141, 30.695652173913043, 9.668122350904568),
    (216.25489393939392, 19.176465340447848, 430.95360824742266, 54.97790476867727),
    (217.4117230769231, 20.757673955585453, 348.3174603174603, 30.14347985347738),
    (98.38857297297298, 13.205048376808929, 141.43715846994536, 5.271340868190727),
    (88.87509473684209, 23.152936862511545, 158.7433155080214, 64.87526819391198),
    (66.96994262295081, 16.682497150763503, 81.06086956521739, 7.003461202082419),
    (36.668852040816326, 13.759109844677598, 32.60621761658031, 5.0418315093016615),
    (149.31716326530614, 26.018185409516104, 281.5388601036269, 90.60338778706557),
    (139.847, 80.04755583050091, 194.34065934065933, 36.6519776778435),
    (54.97624444444445, 16.645170929316794, 66.53787878787878, 16.456280602190606),
)


@dataclass(frozen=True, slots=True)
class Duration:
    """The duration of a step in s: mean and SD of a normal distribution."""

    mean_s: float
    sd_s: float


@dataclass(frozen=True, slots=True)
class CollaboratorTimes:
    """The durations of a collaborator for one patient and for one transfer of the model."""

    validation: Duration
    training: Duration
    download: Duration
    upload: Duration


@dataclass(frozen=True, slots=True)
class Collaborator:
    """A site of a federation: its numbers of patients, and its durations."""

    n_validation: int
    n_training: int
    times: CollaboratorTimes


def assign_times(n_collaborators: int, seed: int = _SEED) -> tuple[CollaboratorTimes, ...]:
    """Draw a machine and a network for each collaborator in order; return the durations.

    The draws equal those of the challenge, which uses numpy's legacy generator.
    """
    rng = np.random.RandomState(seed)  # the published numbers come from the legacy generator
    drawn = []
    for _ in range(n_collaborators):
        machine = _MACHINES[rng.randint(len(_MACHINES))]
        network = _NETWORKS[rng.randint(len(_NETWORKS))]
        drawn.append(
            CollaboratorTimes(
                Duration(*machine[:2]),
                Duration(*machine[2:]),
                Duration(*network[:2]),
                Duration(*network[2:]),
            )
        )
    return tuple(drawn)


def simulate_round(
    collaborators: Sequence[Collaborator],
    trains: Sequence[bool],
    round_number: int,
    epochs: int = 1,
) -> tuple[float, ...]:
    """Return each collaborator's duration of a round in s; the round takes the longest one.

    Every collaborator downloads and validates. A training collaborator also trains, validates its
    own model (a second draw) and uploads. Rounds count from 0.

    Raises
    ------
    ValueError
        If the two sequences differ in length.

    Examples
    --------
    >>> times = assign_times(1)
    >>> [round(s, 1) for s in simulate_round([Collaborator(20, 80, times[0])], [True], 0)]
    [1670.6]
    """
    rng = np.random.RandomState(round_number)  # as in `assign_times`

    def draw(step: Duration) -> float:
        return max(_LEAST_S, float(rng.normal(step.mean_s, step.sd_s)))

    seconds = []
    for collaborator, is_training in zip(collaborators, trains, strict=True):
        total = draw(collaborator.times.download) + collaborator.n_validation * draw(
            collaborator.times.validation
        )
        if is_training:
            total += collaborator.n_training * epochs * draw(collaborator.times.training)
            total += collaborator.n_validation * draw(collaborator.times.validation)
            total += draw(collaborator.times.upload)
        seconds.append(total)
    return tuple(seconds)
