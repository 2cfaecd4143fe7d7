"""Record what the real nnInteractive answers to the prompts of the tests.

    python tools/record_prompt_answers.py ENVIRONMENT

ENVIRONMENT is a Python environment that holds nninteractive. The model is the one of
`tests/features/prompt/contract_model.py`, whose weights are set by hand. The answers are written to
`tests/features/prompt/recorded_answers.json`.
"""

import json
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests/features/prompt"
sys.path.insert(0, str(TESTS))

from contract_model import write_model  # noqa: E402
from prompt_story import (  # noqa: E402
    RECORDED,
    RecordingEngine,
    kinetic_labels,
    new_session,
    started,
    tell,
)

from napari_mamamia.features.prompt.segmentation.engine import EngineSettings  # noqa: E402
from napari_mamamia.features.prompt.segmentation.engines import PROMPT_ENGINES  # noqa: E402


def main() -> None:
    """Tell the story to the real package, and write its answers."""
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder) / "model")
        settings = EngineSettings(model=model, environment=Path(sys.argv[1]), device="cpu")
        engine = RecordingEngine(PROMPT_ENGINES["local"].make(settings))
        session = started(engine, engine.connect(), new_session(kinetic_labels()))
        engine.set_image(session.image.array)
        tell(session)
        session.close()
    RECORDED.write_text(json.dumps(engine.calls, indent=0) + "\n")
    print(f"{len(engine.calls)} calls in {RECORDED}")


if __name__ == "__main__":
    main()
