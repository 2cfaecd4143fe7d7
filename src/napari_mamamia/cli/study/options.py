"""Options that several commands of `mamamia review` share."""

from pathlib import Path
from typing import Annotated

import typer

StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study.")]
AskerOption = Annotated[
    str,
    typer.Option(
        "--reader", metavar="NAME", help="Who asks; needed where readers do not see each other."
    ),
]
UnblindOption = Annotated[
    str,
    typer.Option("--unblind", metavar="REASON", help="Why one who is blind may see all; noted."),
]
