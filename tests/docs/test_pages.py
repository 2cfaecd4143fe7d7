"""The pages as they are written: links, commands and options hold, before any site is built."""

import ast
import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer
from tests.cli.warm_program import mamamia
from tests.conftest import write_small_data_set

import napari_mamamia
from napari_mamamia.cli.app import app

TOP = Path(__file__).parents[2]
PAGES = sorted([*(TOP / "docs").rglob("*.md"), *TOP.glob("*.md")])
TOLD = [page for page in PAGES if page.name not in ("CHANGELOG.md", "DESIGN.md")]
"""Pages that speak of the program as it is: changes tell what was, the design of others too."""

STEPS = [page for page in PAGES if page.parent.name in ("start", "howto")]
NAPARI_WORDS = {"File", "Open Sample", "Plugins", "MAMA-MIA", "slice", "phase"}
"""napari's own menus and sliders, and our entry in them."""

FOREIGN = {"--verify_dataset_integrity"}
"""Options of other programs that a page names."""


def short(page):
    return str(page.relative_to(TOP))


def anchor_of(heading):
    """Return the anchor that a heading gets in the site and on a code host."""
    kept = re.search(r"\{\s*#([\w-]+)\s*\}", heading)
    words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
    return kept.group(1) if kept else re.sub(r"[\s-]+", "-", words)


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_every_link_of_a_page_leads_to_a_file_and_its_part(page):
    text = re.sub(r"(?s)```.*?```|`[^`\n]*`", "", page.read_text("utf-8"))
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, part = link.partition("#")
        if re.match(r"https?:", link) or name in made_at_build():
            continue  # the strict build looks at the parts of pages that it makes
        target = (page.parent / name) if name else page
        if not target.exists():
            dead.append(link)
        elif part:
            headings = re.findall(r"(?m)^#+ (.*)", target.read_text("utf-8"))
            dead += [] if part in map(anchor_of, headings) else [link]
    assert dead == []


def made_at_build():
    """Return the pages that are not in the folder: the build makes and checks them."""
    made = (
        "benchmark_history.md",
        "command_line.md",
        "keys.md",
        "design.md",
        "changelog.md",
        "contributing.md",
        "reporting.md",
    )
    notebooks = (TOP / "docs" / "notebooks").glob("*.ipynb")
    made += tuple(f"notebooks/{notebook.stem}.md" for notebook in notebooks)
    return {before + name for name in made for before in ("", "../")}


@cache
def options_of_commands():
    """Return the options of each command, by its words: ("models", "add")."""

    def found(command, words):
        for name, inner in getattr(command, "commands", {}).items():
            yield from found(inner, (*words, name))
        params = command.get_params(command.context_class(command))
        yield words, {option for one in params for option in one.opts}

    return dict(found(typer.main.get_command(app), ()))


def command_lines(text):
    """Return the lines of code blocks that call `mamamia`, whole where they go over lines."""
    for language, block in re.findall(r"(?s)```(\w*)\n(.*?)```", text):
        if language != "bash":
            continue
        for line in re.sub(r"\\\n", " ", block).splitlines():
            if line.startswith("mamamia "):
                yield line


def test_the_commands_of_the_pages_are_found():
    assert sum(len(list(command_lines(page.read_text("utf-8")))) for page in TOLD) > 20


@pytest.mark.parametrize("page", TOLD, ids=short)
def test_each_command_and_option_in_a_code_block_is_one_of_the_program(page):
    known = options_of_commands()
    wrong = []
    for line in command_lines(page.read_text("utf-8")):
        words = shlex.split(re.sub(r"[\[\]]", "", line), comments=True)[1:]
        depth = 2 if tuple(words[:2]) in known else 1
        options = known.get(tuple(words[:depth]), None)
        if options is None and not words[0].startswith("--"):
            wrong.append(line)
            continue
        options = known[()] if options is None else options
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        wrong += [f"{line}: {one}" for one in given - options]
    assert wrong == []


@pytest.mark.parametrize("page", TOLD, ids=short)
def test_each_option_that_a_text_names_is_one_of_some_command(page):
    text = re.sub(r"(?s)```.*?```", "", page.read_text("utf-8"))
    scripts = "".join(path.read_text("utf-8") for path in (TOP / "benchmarks").glob("*.py"))
    every = set().union(*options_of_commands().values(), re.findall(r'"(--[a-z-]+)"', scripts))
    named = {
        option
        for code in re.findall(r"`([^`\n]*)`", text)
        if not re.match(r"(pip|python|xvfb|npm|git|apt) ", code)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z_-]+", code)
    }
    assert named - every - FOREIGN == set()


@cache
def texts_of_the_window():
    """Return every text in the source of the window."""
    source = TOP / "src" / "napari_mamamia"
    folders = (source / "widgets", *source.glob("features/*/widgets"))
    window = (path for folder in folders for path in folder.rglob("*.py"))
    names = (TOP / "src" / "napari_mamamia" / "napari.yaml").read_text("utf-8")
    texts = {
        part.strip()
        for path in window
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for part in (node.value, *re.split(r"\{[^}]*\}", node.value))  # "{n} more" says "more"
    }
    return texts | set(re.findall(r"(?:title|display_name): (.*)", names))


@pytest.mark.parametrize("page", STEPS, ids=short)
def test_each_word_of_the_window_in_the_steps_is_on_the_screen(page):
    """In the steps what stands in bold is a word of the window (or napari's own)."""
    text = re.sub(r"(?s)```.*?```", "", page.read_text("utf-8"))
    shown = {word.strip("▾▸ ") for word in texts_of_the_window()} | NAPARI_WORDS
    named = [
        word
        for bold in re.findall(r"\*\*([^*]+)\*\*", text)
        for word in bold.split(" > ")
        if not bold.endswith(".")
    ]
    assert [word for word in named if word not in shown] == []


def test_the_commands_of_the_scientists_first_steps_run_as_they_stand(tmp_path, monkeypatch):
    """All but `demo`, which takes half a minute: three small cases stand in its place."""
    write_small_data_set(tmp_path / "demo" / "dataset")
    monkeypatch.chdir(tmp_path)
    page = (TOP / "docs" / "start" / "scientist.md").read_text("utf-8")
    lines = [shlex.split(line)[1:] for line in command_lines(page)]
    assert [line[0] for line in lines] == ["demo", "cases", "predict", "score", "export", "verify"]
    for line in lines[1:]:
        done = mamamia(*line, has_figures=False)
        assert done.returncode == 0, (line, done.stdout + done.stderr)
    for name in re.findall(r"`(scores/[\w.]+)`", page):
        assert (tmp_path / name).is_file(), name
    for block in re.findall(r"(?s)```python\n(.*?)```", page):
        exec(block, {})


def test_every_page_of_the_methods_is_a_subject_of_their_table():
    methods = TOP / "docs" / "methods"
    named = re.findall(r"(?m)^\| \[.*\]\((\w+\.md)\)", (methods / "index.md").read_text("utf-8"))
    assert sorted({*named, "index.md"}) == sorted(page.name for page in methods.glob("*.md"))
    assert len(named) == len(set(named))


def test_the_page_of_the_library_has_each_public_name_once_and_opening_data_comes_first():
    spec = importlib.util.spec_from_file_location("site_pages", TOP / "tools" / "site_pages.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    page = made.public_names()
    names = re.findall(r"(?m)^::: napari_mamamia\.(\w+)$", page)
    assert sorted(names) == sorted(n for n in napari_mamamia.__all__ if not n.startswith("_"))
    assert names[0] == "open_data_set"
    assert "From other features" not in page


def test_the_page_of_commands_names_every_option_once_with_its_range():
    spec = importlib.util.spec_from_file_location("site_pages", TOP / "tools" / "site_pages.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    parts = re.split(r"(?m)^## ", made.command_line_page())[1:]
    page = {tuple(part.split(" {", 1)[0].split()[1:]): part for part in parts}
    wanted = {words: opts for words, opts in options_of_commands().items() if words in page}
    assert len(page) == len(wanted) > 25
    for words, options in wanted.items():
        assert [
            o
            for o in options - {"--help", "--quiet", "--verbose", "--json"}
            if o[:2] == "--" and f"`{o}`" not in page[words]
        ] == [], words
    assert "a time limit of 0.001 to 604800 s" in page["predict",]
    assert "`mean`, `majority`, `staple`" in page["predict",]


def test_no_picture_lies_about_that_no_page_shows():
    texts = "".join(page.read_text("utf-8") for page in PAGES)
    pictures = [path.name for path in (TOP / "docs" / "images").iterdir()]
    assert [name for name in pictures if f"images/{name})" not in texts] == []
