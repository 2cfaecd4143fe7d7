"""The example in the help of every command is one that the command takes."""

import re
import shlex

import pytest

from napari_mamamia.cli.app import list_commands, load_command


def leaves(command, words):
    """Yield the words and the command of every command without commands of its own."""
    if hasattr(command, "commands"):
        for name, member in command.commands.items():
            yield from leaves(member, (*words, name))
    else:
        yield words, command


COMMANDS = [
    leaf
    for group in list_commands().values()
    for entry in group
    for leaf in leaves(load_command(entry), (entry.name,))
]


@pytest.mark.parametrize(
    ("words", "command"), COMMANDS, ids=lambda x: "-".join(x) if isinstance(x, tuple) else ""
)
def test_the_help_of_a_command_ends_with_an_example_that_it_takes(words, command):
    (typed,) = re.findall(r"Example: (.+)", command.help)
    program, *rest = shlex.split(typed)
    assert (program, tuple(rest[: len(words)])) == ("mamamia", words)
    context = command.make_context(words[-1], rest[len(words) :])
    assert context.command is command
