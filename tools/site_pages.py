"""Pages of the documentation site that are made at each build (a hook of mkdocs).

Nothing of them is kept in the repository, so nothing can grow false: the command line from its own
parser, design, changes and contributing from the files at the top, notebooks from their cells, the
history of benchmarks from its records, and the list of numbers from the tables of the methods
pages.
"""

import enum
import importlib.util
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TOP = Path(__file__).parents[1]
_CELL_S = 240
"""Longest time of a cell of a notebook, seconds."""
_NO_ADDRESS = "http://127.0.0.1:9"
"""Address without a server: a build downloads no exam unless it is given an address."""
SHOWN = {
    "design.md": "DESIGN.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "reporting.md": "SECURITY.md",
}
"""Pages that are files at the top of the repository."""

NUMBERS_HERE = "<!-- the numbers of all pages -->"
NAMES_HERE = "<!-- the public names -->"
METRICS_HERE = "<!-- the metrics -->"
MAPS_HERE = "<!-- the maps -->"
FORMATS_HERE = "<!-- the export formats -->"
LAYOUTS_HERE = "<!-- layouts -->"
KINDS_HERE = "<!-- the kinds of models -->"
STEPS_HERE = "<!-- the steps of a review -->"
TERMS_HERE = "<!-- the terms of breast-mri-2013 -->"
_NAMES = {"column", "name", "name (column)", "number", "quantity", "shown"}
_MEANS = {"formula", "definition", "is"}


def on_config(config: Any) -> Any:
    """Put the notebooks into the menu, in the order of their names."""
    pages = [f"notebooks/{one.stem}.md" for one in _notebooks(config)]
    places = [at for at, part in enumerate(config["nav"]) if "Reference" in part]
    if pages and places:
        config["nav"].insert(places[0], {"Notebooks": pages})
    return config


def _notebooks(config: Any) -> list[Path]:
    return sorted((Path(config["docs_dir"]) / "notebooks").glob("*.ipynb"))


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that no file of the folder holds."""
    from mkdocs.structure.files import File

    pages = {page: _as_page(TOP / source) for page, source in SHOWN.items()}
    pages["command_line.md"] = command_line_page()
    pages["keys.md"] = keys_page()
    pages["benchmark_history.md"] = benchmark_history()
    for notebook in _notebooks(config):
        page = notebook_page(run_notebook(notebook), notebook.name)
        pages[f"notebooks/{notebook.stem}.md"] = page
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the list of numbers where the page asks for it, and pictures with what they show."""
    if NUMBERS_HERE in markdown:
        folder = Path(config["docs_dir"]) / Path(page.file.src_uri).parent
        subjects = re.findall(r"^\| \[.*\]\((\w+\.md)\)", markdown, re.M)
        markdown = markdown.replace(NUMBERS_HERE, numbers_table(folder, subjects))
    if NAMES_HERE in markdown:
        markdown = markdown.replace(NAMES_HERE, public_names())
    markdown = with_tables(markdown)
    markdown = re.sub(r"(?m)^\|.*`.*$", _row, markdown)
    return re.sub(r"(?m)^!\[(.+)\]\((\S+\.png)\)$", _figure, markdown)


def _row(row: re.Match[str]) -> str:
    """Return a row of a table whose code shows no backslash: here a bar in code parts no cells."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])


def _figure(picture: re.Match[str]) -> str:
    """Return a picture that opens in full size, with its text below: all read it, not only some."""
    shown, place = picture.groups()
    return (
        f'<figure markdown="span">\n  [![{shown}]({place})]({place})\n'
        f"  <figcaption>{shown}</figcaption>\n</figure>"
    )


def _as_page(source: Path) -> str:
    """Return a file of the repository with its links as they are in the site."""
    text = source.read_text("utf-8")
    places = {name: page for page, name in SHOWN.items()} | {"README.md": "index.md"}
    for name, page in places.items():
        text = text.replace(f"]({name})", f"]({page})")
    return text.replace("](docs/", "](")


def benchmark_history() -> str:
    """Return the page that draws the recorded runs of `make bench`."""
    spec = importlib.util.spec_from_file_location("history", TOP / "benchmarks" / "history.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError("benchmarks/history.py")
    history = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(history)
    page: str = history.history_page(history.read_runs())
    return page


def command_line_page() -> str:
    """Return every command with its arguments and options, from the parser that reads them."""
    import typer

    from napari_mamamia.cli.app import app

    program = typer.main.get_command(app)
    commands = dict(_commands(program, ("mamamia",)))
    parts = [
        "# Command line",
        f"{program.help} {program.epilog}",
        "This page is made from the program's own parser. `mamamia COMMAND --help` shows the same "
        "in a terminal. A value out of its range is refused before anything is read. Every command "
        "has `--quiet`, `--verbose` and mostly `--json`, too: see "
        "[Use the commands in scripts](howto/scripts.md).",
        "| command | what it does |\n|---|---|\n"
        + "\n".join(
            f"| [`{' '.join(words)}`](#{'-'.join(words)}) | {_cell(_first_line(command.help))} |"
            for words, command in commands.items()
        ),
        *(_command_section(words, command) for words, command in commands.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from _commands(inner, (*words, name))
        elif not inner.hidden:
            yield (*words, name), inner


def _command_section(words: tuple[str, ...], command: Any) -> str:
    name = " ".join(words)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join([name, *(_metavar(one) for one in arguments), "[OPTIONS]"])
    parts = [f"## {name} {{ #{'-'.join(words)} }}", _escape(command.help or "")]
    parts.append(f"```text\n{usage}\n```")
    if arguments:
        rows = [f"| `{_metavar(one)}` | {_what(one)} |" for one in arguments]
        parts.append("| argument | what it is |\n|---|---|\n" + "\n".join(rows))
    if options:
        rows = [
            f"| {', '.join(f'`{word}`' for word in one.opts + one.secondary_opts)} "
            f"| {_cell(_taken(one))} | {_cell(_default(one))} | {_what(one)} |"
            for one in options
        ]
        head = "| option | takes | default | what it does |\n|---|---|---|---|\n"
        parts.append(head + "\n".join(rows))
    return "\n\n".join(parts)


def _metavar(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _what(one: Any) -> str:
    panel = one.rich_help_panel
    return _cell(" ".join([*([f"*{panel}.*"] if panel else []), _escape(one.help or "")]))


def _taken(one: Any) -> str:
    """Return what an option takes: choices, a range with its unit, or a word for it."""
    if one.is_flag:
        return "nothing"
    kind = one.type_descriptor.annotation
    quantity = getattr(one.type_descriptor.parameter_info.parser, "text", None)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        taken = ", ".join(f"`{choice.value}`" for choice in kind)
    elif quantity:
        taken = str(quantity)
    else:
        taken = f"`{one.metavar or {Path: 'PATH'}.get(kind, 'TEXT')}`"
    return f"{taken}; may be repeated" if one.multiple else taken


def _default(one: Any) -> str:
    if one.required:
        return "**needed**"
    value = one.default.value if isinstance(one.default, enum.Enum) else one.default
    return "" if one.is_flag or value in (None, "", [], ()) else f"`{value}`"


def _first_line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _escape(text: str) -> str:
    """Keep what Markdown or HTML would take for a sign of its own, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


TASKS = {
    "Open data": ("open_data_set", "DataSet", "Case"),
    "Masks and grids": ("Mask", "Grid", "read_mask", "write_mask", "from_nibabel", "to_nibabel"),
    "DICOM": ("inspect_dicom", "import_dicom", "Imported"),
    "Segment": ("predict", "Prediction", "Predictions", "grow", "Growth", "Outline"),
    "Prompt models": ("prompt", "Prompt", "Prompted"),
    "Score": ("score", "score_table", "Scores", "Comparison", "metrics"),
    "Kinetics": ("kinetics", "measure_kinetics", "Measurements"),
    "Lesion detection": ("score_detection", "Detections", "FocalLoss", "risk_adjusted_focal"),
    "Review studies": ("open_study", "ReviewStudy"),
    "Export": ("export", "verify", "Exported"),
    "Phantoms": ("make_phantoms", "make_phantom_study"),
}
"""The public names by task; the errors and the names of other features follow."""


def public_names() -> str:
    """Return a section for each task with its names, in the words of their docstrings."""
    import napari_mamamia

    named = {name for names in TASKS.values() for name in names}
    others = [
        name for name in napari_mamamia.__all__ if name not in named and not name.startswith("_")
    ]
    errors = [name for name in others if name.endswith("Error")]
    tasks = {
        **TASKS,
        "From other features": [name for name in others if name not in errors],
        "Errors": errors,
    }
    return "\n\n".join(
        "\n\n".join([f"## {title}", *map(_name_section, names)])
        for title, names in tasks.items()
        if names
    )


def _name_section(name: str) -> str:
    import napari_mamamia

    member = getattr(napari_mamamia, name)
    section = f"::: napari_mamamia.{name}\n    options:\n      heading_level: 3"
    if inspect.ismodule(member):
        section += f"\n      members: {list(getattr(member, '__all__', ()))}"
    return section


def with_tables(markdown: str) -> str:
    """Return a page with the tables that the program is made of, where it asks for them."""
    tables = {
        METRICS_HERE: metrics_table,
        MAPS_HERE: maps_table,
        FORMATS_HERE: export_formats,
        LAYOUTS_HERE: layouts_table,
        KINDS_HERE: model_kinds,
        STEPS_HERE: review_steps,
        TERMS_HERE: lexicon_terms,
    }
    for place, table in tables.items():
        if place in markdown:
            markdown = markdown.replace(place, table())
    return markdown


def metrics_table() -> str:
    """Return a row for each metric of a case, from the list that scores are computed from."""
    from napari_mamamia.metrics.registry import METRICS, Better

    rows = ["| column | unit | better | formula | source | compared with |", f"|{'---|' * 6}"]
    for one in METRICS:
        share = "– (0 to 1)" if one.better is Better.HIGHER else "– (0 is best)"
        unit = one.unit.replace("mm3", "mm³") or share
        better = "–" if one.better is Better.NEITHER else one.better.value
        texts = (_cell(text) for text in (one.formula, one.source, one.oracle))
        rows.append(f"| `{one.name}` | {unit} | {better} | {' | '.join(texts)} |")
    return "\n".join(rows)


def maps_table() -> str:
    """Return a row for each kinetic map, from the list that maps are computed from."""
    from napari_mamamia.kinetics.map_kinds import MAPS, library_name

    rows = ["| map | in `mm.kinetics.maps` | formula | unit | colours | source |", f"|{'---|' * 6}"]
    for kind, spec in MAPS.items():
        colours = spec.ranges[0].name if spec.ranges else "classes"
        texts = (str(kind), f"`{library_name(kind)}`", spec.formula, spec.unit or "–", colours)
        rows.append(f"| {' | '.join(map(_cell, (*texts, spec.source)))} |")
    return "\n".join(rows)


def review_steps() -> str:
    """Return every step of a case in a review study: the table that its state is found by."""
    from napari_mamamia.features.review.rules.states import lines_of_table

    return "\n".join(lines_of_table())


def lexicon_terms() -> str:
    """Return every question of the shipped lexicon with its terms and their codes."""
    from napari_mamamia.findings.form_values import join_codes
    from napari_mamamia.io.forms.form_file import read_shipped_lexicon

    rows = ["| question | asked of | terms (code) |", "|---|---|---|"]
    for field in read_shipped_lexicon("breast-mri-2013").fields:
        terms = [
            f"{term.text} ({join_codes(term.codes)})" if term.codes else term.text
            for term in field.terms
        ]
        said = ", ".join(terms) or f"a number, {field.unit}"
        codes = f" ({join_codes(field.codes)})" if field.codes else ""
        rows.append(f"| {_cell(field.text)}{codes} | {field.scope} | {_cell(said)} |")
    return "\n".join(rows)


def model_kinds() -> str:
    """Return the kinds of models that run: the table that they are recognised and loaded by."""
    from napari_mamamia.segmentation.run.engines import MODEL_KINDS

    rows = [
        f"| {_cell(kind)} | {', '.join(f'`{extra}`' for extra in spec.extras)} | {spec.given} |"
        for kind, spec in MODEL_KINDS.items()
    ]
    return "\n".join(["| kind | extra | what to give |", "|---|---|---|", *rows])


def layouts_table() -> str:
    """Return a row for each layout that folders are matched with."""
    from napari_mamamia.io.layouts.known import list_layouts

    rows = [
        f"| `{layout.name}` | {_cell(layout.title)} | {_cell(layout.about)} |"
        for layout in list_layouts()
    ]
    return "\n".join(["| name | data set or tool | content and limits |", "|---|---|---|", *rows])


def export_formats() -> str:
    """Return what an export writes: the table that the command and the window are made of."""
    from napari_mamamia.services.export.formats import EXPORT_FORMATS

    rows = [
        f"| `{name}` | {_cell(spec.title)} | {_cell(spec.purpose)} |"
        for name, spec in EXPORT_FORMATS.items()
    ]
    return "\n".join(["| `--format` | in the window | for |", "|---|---|---|", *rows])


def keys_page() -> str:
    """Return the keys and the mouse of the window, from the table that the window shows."""
    from napari_mamamia.widgets.base.keys import KEYS, MOUSE_LINES, NAPARI_KEYS

    ours = [(key.shown, key.text) for key in KEYS]
    parts = ["# Keys and mouse", "`?` shows this table in the window, and changes the keys."]
    for title, rows in (("Keys", ours), ("Mouse", MOUSE_LINES), ("napari's own", NAPARI_KEYS)):
        lines = "\n".join(f"| `{key}` | {_cell(_escape(text))} |" for key, text in rows)
        parts.append(f"## {title}\n\n| key | what it does |\n|---|---|\n{lines}")
    return "\n\n".join(parts) + "\n"


def run_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs of its cells, run in a kernel of its own.

    Outputs that it already has are kept. An exam is downloaded only if MAMAMIA_EXAM_ADDRESS
    names the address. SITE_NOTEBOOKS names the notebooks to run, by their file
    names without suffix and separated by commas; by default, all are run.

    Raises
    ------
    RuntimeError
        If a cell fails.
    """
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    chosen = os.environ.get("SITE_NOTEBOOKS")
    if any(cell.get("outputs") for cell in cells):
        return notebook
    if chosen is not None and path.stem not in chosen.split(","):
        return notebook
    from jupyter_client.manager import start_new_kernel

    with TemporaryDirectory() as folder:
        own = {"MAMAMIA_EXAM_ADDRESS": _NO_ADDRESS, **os.environ, "TMPDIR": folder}
        manager, client = start_new_kernel(cwd=folder, env=own)
        try:
            for cell in cells:
                messages: list[dict[str, Any]] = []
                client.execute_interactive(
                    "".join(cell["source"]), timeout=_CELL_S, output_hook=messages.append
                )
                cell["outputs"] = [*_as_outputs(messages, path)]
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    return notebook


def _as_outputs(messages: list[dict[str, Any]], path: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of a cell as outputs of a notebook."""
    for message in messages:
        content = message["content"]
        if message["msg_type"] == "error":
            raise RuntimeError(f"{path.name} failed: " + "\n".join(content["traceback"]))
        is_progress = "<progress" in content.get("data", {}).get("text/html", "")
        if message["msg_type"] in ("stream", "display_data", "execute_result") and not is_progress:
            yield {"output_type": message["msg_type"], **content}


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as a page: its texts, its code, and what its cells showed."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts.append(f"```python\n{text}\n```")
            parts += [_output(one) for one in cell.get("outputs", [])]
    runs = "" if any(cell.get("outputs") for cell in notebook["cells"]) else ", run it, and see"
    parts.insert(1, f"[Download this notebook]({name}){{ download }}{runs}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return (
            f"![what the cell showed](data:image/png;base64,{''.join(data['image/png']).strip()})"
        )
    if "text/html" in data:
        return "<div>" + re.sub(r"\n\s*\n", "\n", "".join(data["text/html"])) + "</div>"
    plain = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
    return f"```text\n{plain}\n```" if plain else ""


def numbers_table(folder: Path, pages: list[str]) -> str:
    """Return each number that a table of these pages defines: its name, its page, its unit."""
    rows = [
        f"| {name} | [{title}]({page}) | {unit} |"
        for page in pages
        for title, name, unit in _numbers_of(with_tables((folder / page).read_text("utf-8")))
    ]
    return "\n".join(["| number | defined in | unit |", "|---|---|---|", *rows])


def _numbers_of(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (title of the page, number, unit) of each row of a table of definitions."""
    title = text.split("\n", 1)[0].lstrip("# ")
    for table in re.findall(r"(?m)^\|.*\n\|[-|: ]+\n(?:\|.*\n?)+", text):
        head, _, *rows = [_cells(line) for line in table.splitlines()]
        if head[0] in _NAMES and _MEANS & set(head):
            unit = head.index("unit") if "unit" in head else None
            for row in rows:
                yield title, row[0], (row[unit] if unit is not None else "") or "–"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
