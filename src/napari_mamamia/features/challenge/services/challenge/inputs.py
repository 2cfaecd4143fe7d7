"""Compare the inputs of a challenge with the frozen hashes before use."""

from napari_mamamia.core.choices import UnusableRule
from napari_mamamia.core.errors import FormatError
from napari_mamamia.features.challenge.io.challenge_file import (
    FrozenFile,
    OpenChallenge,
    find_changes,
)
from napari_mamamia.scoring.case.profiles import profile_named
from napari_mamamia.services.score.settings import ScoreSettings


def find_changed_inputs(opened: OpenChallenge, *, with_images: bool = False) -> tuple[str, ...]:
    """Describe changes of the frozen references, the clinical table and, on request, the images.

    Parameters
    ----------
    opened
        The challenge.
    with_images
        Whether to also compare the images.
    """
    challenge = opened.challenge
    references = {
        case.case_id: case.reference for case in challenge.cases if case.reference is not None
    }
    changes = [
        f"reference of {case_id}: {problem}"
        for case_id, problem in find_changes(opened.reference, references).items()
    ]
    tables: dict[str, FrozenFile] = {
        name: file
        for name, file in (("table", challenge.clinical), ("columns", challenge.columns))
        if file is not None
    }
    changes += [
        f"clinical {name}: {problem}"
        for name, problem in find_changes(opened.folder, tables).items()
    ]
    profile = profile_named(challenge.profile)
    if profile.version != challenge.profile_version:
        changes.append(
            f"the profile {profile.name} has version {profile.version} here, but the challenge "
            f"uses {challenge.profile_version}: use the software that created it "
            f"({challenge.software})"
        )
    if with_images:
        for case in challenge.cases:
            images = {file.name: file for file in case.images}
            changes += [
                f"image of {case.case_id}: {problem}"
                for problem in find_changes(opened.images, images).values()
            ]
    return tuple(changes)


def require_inputs(opened: OpenChallenge, *, with_images: bool = False) -> None:
    """Raise `FormatError` if an input differs from its frozen state.

    Parameters
    ----------
    opened
        The challenge.
    with_images
        Whether to also compare the images.
    """
    changes = find_changed_inputs(opened, with_images=with_images)
    if changes:
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        raise FormatError(
            f"expected all inputs as frozen in {opened.folder / 'challenge.json'}, but "
            f"{'; '.join(changes[:3])}{more}: restore the files, or correct places.json; "
            "nothing was scored"
        )


def score_settings(opened: OpenChallenge) -> ScoreSettings:
    """Return the scoring settings of the challenge."""
    challenge = opened.challenge
    return ScoreSettings(
        profile=profile_named(challenge.profile),
        clinical=opened.clinical,
        n_resamples=challenge.n_resamples,
        seed=challenge.seed,
        unusable=UnusableRule(challenge.rule) if challenge.rule else None,
    )
