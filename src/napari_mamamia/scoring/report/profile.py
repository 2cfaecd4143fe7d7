"""A profile written out for the head of a report."""

from napari_mamamia.metrics.registry import metric
from napari_mamamia.scoring.case.profiles import Profile, profile_named
from napari_mamamia.scoring.cohort.group_rules import GroupRules, rules_of

__all__ = ["profile_points"]

_WORDS = {
    "chosen_label": "the chosen label, else any value above 0 (soft masks: at least 0.5)",
    "one": "the value 1",
    "uint8": "not 0 as uint8",
    "same_place": "equal shape and place, else a grid mismatch",
    "same_shape": "equal shape; differing affines are warned of",
    "scored_as_empty": "scored as an empty prediction",
    "not_scored": "not scored",
}


def profile_points(name: str) -> tuple[tuple[str, str], ...]:
    """Return the definitions of a profile, each as a point and what holds."""
    profile, rules = profile_named(name), rules_of(name)
    return (*_of_cases(profile), *_of_groups(rules))


def _of_cases(profile: Profile) -> tuple[tuple[str, str], ...]:
    spec = metric(profile.distance)
    limit = "not cut" if profile.norm_hd_limit is None else f"cut to {profile.norm_hd_limit:g}"
    return (
        ("Source", f"{profile.source} (version {profile.version})"),
        ("Grids", _WORDS[profile.grid_rule]),
        ("Foreground of Dice", _WORDS[profile.overlap_foreground]),
        ("Foreground of distances", _WORDS[profile.distance_foreground]),
        ("NormHD", f"{spec.label} in {spec.unit} / {profile.divisor:g} {spec.unit}, {limit}"),
        (
            "Both masks empty",
            f"Dice {_or_undefined(profile.overlap_both_empty)}, NormHD "
            f"{_or_undefined(profile.norm_hd_both_empty)}",
        ),
        ("One mask empty", f"Dice 0, NormHD {profile.norm_hd_one_empty:g}"),
        ("Prediction missing", _WORDS[profile.missing_prediction]),
    )


def _of_groups(rules: GroupRules) -> tuple[tuple[str, str], ...]:
    peri = rules.peri_is or "unassigned"
    missing = rules.missing_menopause_is or "unassigned"
    least = f"under {rules.min_group_size} cases" if rules.min_group_size else "not flagged"
    return (
        ("Age groups (years)", ", ".join(group.label for group in rules.age_groups)),
        (
            "Menopausal status",
            f"{', '.join(rules.menopause_groups)}; peri: {peri}; missing: {missing}",
        ),
        ("Breast density", f"{', '.join(rules.density_groups)}; missing: unassigned"),
        ("Small groups", f"{least}; kept in the numbers"),
        ("Weight of fairness", f"{rules.weight_of_fairness:g}"),
    )


def _or_undefined(value: float | None) -> str:
    return "undefined" if value is None else f"{value:g}"
