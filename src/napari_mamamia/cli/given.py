"""Reject options that have no effect in combination with the other options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from napari_mamamia.cli.scripting import add_shared, run_with


@dataclass(frozen=True)
class Where:
    """The condition under which an option has an effect: a phrase, and a test of the parameters.

    `but` returns a phrase that names the conflicting option.
    """

    text: str
    holds: Callable[[Mapping[str, Any]], bool]
    but: Callable[[Mapping[str, Any]], str]


ALWAYS: Final = Where("", lambda _: True, lambda _: "")
"""The condition of an option that always has an effect, or that is checked elsewhere."""


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether the user passed a parameter, even if its value equals the default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_idle(context: typer.Context, table: Mapping[str, Where]) -> None:
    """Raise an error if an option was passed that has no effect with the other options.

    `table` has an entry for every parameter of the command.

    Raises
    ------
    typer.BadParameter
        If there is such an option.
    """
    options = {param.name: param.opts[0] for param in context.command.params}
    for name, where in table.items():
        if is_given(context, name) and not where.holds(context.params):
            raise typer.BadParameter(
                f"{options[name]} has an effect only {where.text}, but it was passed "
                f"{where.but(context.params)}: leave it out, or change the other option"
            )


def _show_switches(params: list[Any]) -> list[Any]:
    """Remove the type of switches, which would suggest in the help that they take a value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command that rejects empty strings, which would mean the current folder or no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters and the shared options, with switches shown without a type."""
        return _show_switches(add_shared(super().get_params(ctx), self.callback))

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its shared options."""
        with run_with(ctx):
            return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; raise an error if one of them is an empty string."""
        # The parser empties the list that it gets.
        typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.get_params(ctx):
            value = typed.get(param.name)
            values = value if isinstance(value, list | tuple) else (value,)
            if any(isinstance(value, str) and not value.strip() for value in values):
                name = param.opts[0] if param.param_type_name == "option" else param.metavar
                raise typer.BadParameter(
                    f"expected a value for {name}, but got an empty string: type a value, or leave "
                    f"{name} out (is a variable in your script empty?)",
                    ctx=ctx,
                )
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """A group of commands whose help shows switches without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with switches shown without a type."""
        return _show_switches(super().get_params(ctx))


class Program(typer.Typer):
    """A Typer application whose commands are of class `Command`."""

    def __init__(self, **settings: Any) -> None:
        defaults = {
            "cls": Group,
            "add_completion": False,
            "pretty_exceptions_enable": False,
            "context_settings": {"help_option_names": ["-h", "--help"]},
        }
        super().__init__(**{**defaults, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command as `typer.Typer.command` does."""
        return super().command(name, **{"cls": Command, **settings})
