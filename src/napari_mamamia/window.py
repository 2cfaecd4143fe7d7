"""The process of the window: show a splash screen, check the items to open, and run napari.

`mamamia view` becomes this process. Importing napari takes seconds. The splash screen therefore
needs only Qt, and everything else is imported behind it.
"""

import os
import sys

from napari_mamamia.widgets.base.splash import new_application, show_splash


def main() -> None:
    """Open the items that the environment variables name; exit with a message if that fails."""
    app = new_application()
    splash = show_splash(app, os.environ.pop("MAMAMIA_OPENING", ""))
    from napari_mamamia.cli.app import report_errors
    from napari_mamamia.cli.viewing import check_names

    with report_errors():
        os.environ.update(check_names(os.environ))
    from napari_mamamia.widgets.adapter.starting import run_napari

    run_napari(app, "-w", "napari-mamamia", "Cases")
    splash.close()


if __name__ == "__main__":
    main()
    sys.exit(0)
