"""What `mamamia check-computer` reports on prompt models."""

from collections.abc import Iterator

from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.prompt.segmentation.engines import (
    ENVIRONMENT,
    check_environment,
    find_python,
)
from napari_mamamia.features.prompt.services.settings import load_settings
from napari_mamamia.services.check_computer import Finding, State, without_names


def check_prompt_models() -> Iterator[Finding]:
    """Yield a finding on whether the environment for local prompt models exists and works."""
    from pathlib import Path

    stored = load_settings().get("environment", "")
    name = "prompt models"
    try:
        python = find_python(Path(stored) if stored else None)
    except CaseError:
        text = f"no environment for local models: set {ENVIRONMENT}; servers work without it"
        yield Finding(name, text, State.NOTE)
        return
    version, problem = check_environment(python)
    if version:
        yield Finding(name, f"nnInteractive {version} in an environment of its own")
    else:
        yield Finding(
            name, without_names(f"the environment does not work: {problem}"), State.FAILED
        )
