"""Texts of the Export page: files to be written, and results."""

from collections.abc import Sequence

from napari_mamamia.annotations.harmonise import target_names
from napari_mamamia.core.choices import FuseRule
from napari_mamamia.core.label_rules import LabelRule
from napari_mamamia.core.texts import tr, tr_n
from napari_mamamia.services.export.export import ExportSummary
from napari_mamamia.services.export.format_spec import ExportSelection
from napari_mamamia.services.export.formats import formats_of

_MOST_LINES = 6


def what_is_written(selection: ExportSelection) -> str:
    """Return a line-by-line description of the files that an export will write, or "" for none."""
    settings = selection.settings
    formats = formats_of(settings)
    if not selection.n_sets or not formats:
        return ""
    lines = [line for spec in formats for line in spec.describe(selection)]
    if settings.rules:
        lines.append(_labels_text(settings.rules))
    if settings.fuse is not FuseRule.NONE:
        lines.append(
            tr(
                "one additional mask per case: {fuse} of the {n_sets} selected mask sets",
                fuse=settings.fuse,
                n_sets=selection.n_sets,
            )
        )
    lines.append(
        tr("quality.html, the workspace's tables, and manifest.json (SHA-256 of every file)")
    )
    return "\n".join(f"• {line}" for line in lines)


def _labels_text(rules: Sequence[LabelRule]) -> str:
    named = ", ".join(f"{value} {name}" for value, name in target_names(rules))
    left_out = sum(not rule.target for rule in rules)
    rest = tr_n("; {n} value omitted", "; {n} values omitted", left_out) if left_out else ""
    return tr(
        "labels: {named}{rest}; a mask with any other value is rejected",
        named=named or "none",
        rest=rest,
    )


def summary_text(summary: ExportSummary) -> tuple[str, str]:
    """Return the result of an export as text, and its level: "hint", "warning" or "error"."""
    sound = "verified" if not summary.problems else tr("NOT verified")
    lines = [
        tr_n(
            "{n} case exported to {out}, {sound}",
            "{n} cases exported to {out}, {sound}",
            len(summary.exported),
            sound=sound,
            out=summary.out,
        )
    ]
    lights = [item.light for item in summary.exported if item.light]
    if lights:
        counts = (f"{lights.count(name)} {name}" for name in ("green", "amber", "red"))
        lines.append(tr("Quality: {names} (reasons in quality.html)", names=", ".join(counts)))
    if summary.search and not summary.problems:
        lines.append(summary.search)
    wrong = [f"{failure.case_id}: {failure.reason}" for failure in summary.failures]
    messages = [*wrong, *summary.problems, *summary.notes]
    lines += messages[:_MOST_LINES]
    if len(messages) > _MOST_LINES:
        lines.append(tr("… and {n_messages} more", n_messages=len(messages) - _MOST_LINES))
    level = "error" if summary.problems else "warning" if wrong else "hint"
    return "\n".join(lines), level
