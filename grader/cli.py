"""The command `grader`. Each room brings its own commands; one whose room is not installed is not there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import click

# Command name -> where it is. Imported only when it is used, so that a student's copy needs no staff packages.
COMMANDS = {
    "grade": "grader.batch.command:grade",
    "table": "grader.report.command:table",
    "explain": "grader.report.explain_command:explain",
    "replay": "grader.batch.replay_command:replay",
    "handout": "grader.handout.cli:handout",
    "draw": "grader.cluster.draw_command:draw",
}


class Rooms(click.Group):
    """A group whose commands lie in other modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """The names of the commands that are installed, in the order of COMMANDS."""
        return [name for name, place in COMMANDS.items() if _is_installed(place.partition(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name]} is not a command")
        return command


def _is_installed(module: str) -> bool:
    room, _, _ = module.rpartition(".")
    return find_spec(room) is not None and find_spec(module) is not None


def _example() -> str:
    """What to type first: staff grade, and students draw."""
    command = "grade submissions/ --out grades" if _is_installed("grader.batch.command") else "draw pipeline_parallel"
    return f"\b\nExample:\n  grader {command}"


@click.group(
    cls=Rooms,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_example(),
)
@click.version_option(package_name="allgrade", prog_name="grader")
def cli() -> None:
    """The assignment on parallel training: grade it, draw it, make its handouts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; wrong arguments are one line on stderr, and 2."""
    try:
        result = cli.main(arguments, prog_name="grader", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(f"grader: {_one_line(error)}", err=True)
        return error.exit_code
    except click.Abort:  # Ctrl-C
        return 130
    return result if isinstance(result, int) else 0


def _one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context is not None else message


if __name__ == "__main__":
    sys.exit(main())
