"""Shared options for scripts: -q, -v, and --json, which prints the command's result."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TextIO, TypeVar

import typer

F = TypeVar("F", bound=Callable[..., Any])

_REPORTS: Final = "reports_result"
_NO_RESULT: Final = object()


@dataclass
class _Run:
    """The shared options of the running command, with its output and its result."""

    output: TextIO
    is_quiet: bool = False
    is_verbose: bool = False
    as_json: bool = False
    result: Any = _NO_RESULT


_current: ContextVar[_Run | None] = ContextVar("_current", default=None)


def reports_result(command: F) -> F:
    """Mark a command that calls `report_result`, so that it gets the option --json."""
    setattr(command, _REPORTS, True)
    return command


def report_result(make: Callable[[], Any]) -> None:
    """Store the command's result for --json; if the option is not set, do nothing.

    Parameters
    ----------
    make
        Function that returns the result: a value that `napari_mamamia.io.tables.tables.write_json`
        accepts, or JSON text.
    """
    run = _current.get()
    if run is not None and run.as_json:
        run.result = make()


def is_quiet() -> bool:
    """Return whether the command was started with -q."""
    run = _current.get()
    return run is not None and run.is_quiet


def is_verbose() -> bool:
    """Return whether the command was started with -v."""
    run = _current.get()
    return run is not None and run.is_verbose


def output() -> TextIO:
    """Return the program's standard output, even with -q."""
    run = _current.get()
    return sys.stdout if run is None else run.output


@contextmanager
def run_with(context: typer.Context) -> Iterator[None]:
    """Run a command with its shared options; with --json, print its result at the end."""
    given: dict[str, bool] = context.meta.get(__name__, {})
    run = _Run(
        sys.stdout, given.get("quiet", False), given.get("verbose", False), given.get("json", False)
    )
    _current.set(run)
    if not (run.is_quiet or run.as_json):
        yield
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        try:
            with redirect_stdout(nothing if run.is_quiet else sys.stderr):
                yield
        except typer.Exit:
            _print_result(run)
            raise
        _print_result(run)


def _print_result(run: _Run) -> None:
    if run.result is _NO_RESULT:
        return
    from napari_mamamia.io.tables.tables import plain_content

    text = run.result
    if not isinstance(text, str):
        text = json.dumps(plain_content(text), indent=2, ensure_ascii=False, allow_nan=False)
    print(text, file=run.output)


def _keep_value(context: Any, option: Any, value: bool) -> bool:
    context.meta.setdefault(__name__, {})[option.name] = value
    return value


def _make_options() -> dict[str, Any]:
    app = typer.Typer(add_completion=False)

    @app.command()
    def _(
        quiet: Annotated[
            bool, typer.Option("--quiet", "-q", help="Print only errors and failures.")
        ] = False,
        verbose: Annotated[
            bool,
            typer.Option(
                "--verbose", "-v", help="Print each step, and the code location of an error."
            ),
        ] = False,
        json: Annotated[
            bool,
            typer.Option(
                "--json", help="Print the result as JSON; messages go to the error stream."
            ),
        ] = False,
    ) -> None: ...

    options = {}
    for option in typer.main.get_command(app).params:
        option.expose_value = False
        option.callback = _keep_value
        options[option.name or ""] = option
    return options


_OPTIONS: Final = _make_options()


def add_shared(params: list[Any], command: Callable[..., Any] | None) -> list[Any]:
    """Insert the shared options before --help in a command's parameters.

    The command's own options take precedence.
    """
    own = {name for param in params for name in param.opts}
    reports = getattr(command, _REPORTS, False)
    shared = [
        option
        for name, option in _OPTIONS.items()
        if own.isdisjoint(option.opts) and (name != "json" or reports)
    ]
    return [*params[:-1], *shared, *params[-1:]]
