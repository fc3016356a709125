"""``cutplane completion``: a script that makes a shell complete commands, flags and their values.

It is written from the parsers themselves, so it knows what they know. Flags of ``train`` and
``path`` are those of all kinds of models together.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from .common import ExitCode, add_verbose

SHELLS = ("bash", "zsh", "fish")

DESCRIPTION = """\
Print a script that makes the shell complete commands, flags and their values.
"""

EPILOG = """\
examples:
  cutplane completion bash > ~/.local/share/bash-completion/completions/cutplane
  cutplane completion zsh > ~/.zfunc/_cutplane        with ~/.zfunc in fpath
  cutplane completion fish > ~/.config/fish/completions/cutplane.fish
"""


def add_parser(subparsers: Any) -> None:
    """Offer the command to argparse."""
    parser = subparsers.add_parser(
        "completion",
        help="make the shell complete commands and flags",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=SHELLS)
    add_verbose(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script; returns the exit code."""
    commands = known_commands()
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](commands))
    return ExitCode.OK


# -- what there is to complete ------------------------------------------------


@dataclass(frozen=True)
class Flag:
    """A flag: what may follow it, and what it is for."""

    name: str
    takes_value: bool
    values: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Command:
    """A command with its flags and the words that may stand alone."""

    name: str
    help: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]


def known_commands() -> list[Command]:
    """All commands, from their parsers."""
    from . import make_parser
    from .kinds import KINDS

    found: dict[str, Command] = {}
    for kind in KINDS:  # flags depend on it
        for name, parser, text in _subparsers(make_parser()):
            parser.prepare([kind.flag])
            flags = {flag.name: flag for flag in found[name].flags} if name in found else {}
            words: tuple[str, ...] = ()
            for action in parser._actions:
                if not action.option_strings:
                    words += tuple(map(str, action.choices or ()))
                for flag in action.option_strings:
                    old = flags.get(flag)
                    values = tuple(map(str, action.choices or ()))
                    together = dict.fromkeys((*(old.values if old else ()), *values))
                    takes = action.nargs != 0
                    help_text = (old.help if old else "") or _first_sentence(action.help or "")
                    flags[flag] = Flag(flag, takes, tuple(together), help_text)
            found[name] = Command(name, text, tuple(flags.values()), words)
    return list(found.values())


def _subparsers(parser: Any) -> list[tuple[str, Any, str]]:
    action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return [(name, sub, texts.get(name, "")) for name, sub in action.choices.items()]


def _first_sentence(text: str) -> str:
    text = text.replace("%%", "%").partition(". ")[0]
    return text if len(text) <= 70 else text[:67] + "..."


# -- shells -------------------------------------------------------------------

BASH = """\
# bash completion of cutplane
_cutplane() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local command="" words="" k
    for ((k = 1; k < COMP_CWORD; k++)); do
        case ${{COMP_WORDS[k]}} in
            {names}) command=${{COMP_WORDS[k]}}; break ;;
        esac
    done
    case "$command $before" in
{values}
    esac
    if [[ -z $words && -z $command ]]; then
        words="{all} --help --version"
    elif [[ -z $words && $current == -* ]]; then
        case $command in
{flags}
        esac
    elif [[ -z $words ]]; then
        case $command in
{alone}
        esac
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
        compopt -o filenames 2> /dev/null
    fi
}}
complete -F _cutplane cutplane"""


def _bash(commands: list[Command]) -> str:
    values = [
        f'        "{command.name} {flag.name}") words="{" ".join(flag.values)}" ;;'
        for command in commands
        for flag in command.flags
        if flag.values
    ]
    return BASH.format(
        names="|".join(command.name for command in commands),
        all=" ".join(command.name for command in commands),
        values="\n".join(values),
        flags="\n".join(
            f'            {command.name}) words="{_names(command)}" ;;' for command in commands
        ),
        alone="\n".join(
            f'            {command.name}) words="{" ".join(command.words)}" ;;'
            for command in commands
            if command.words
        ),
    )


def _names(command: Command) -> str:
    return " ".join(flag.name for flag in command.flags)


def _quoted(text: str) -> str:
    return text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ";")


def _zsh(commands: list[Command]) -> str:
    lines = ["#compdef cutplane", "_cutplane() {", "  local -a commands", "  commands=("]
    lines += [f"    '{command.name}:{_quoted(command.help)}'" for command in commands]
    lines += [
        "  )",
        "  if (( CURRENT == 2 )); then",
        "    _describe command commands",
        "    return",
    ]
    lines += ["  fi", "  local command=$words[2]", "  shift words", "  (( CURRENT-- ))"]
    lines.append("  case $command in")
    for command in commands:
        lines.append(f"    {command.name})")
        parts = []
        for flag in command.flags:
            value = f":value:({' '.join(flag.values)})" if flag.values else ":value:_files"
            parts.append(f"'{flag.name}[{_quoted(flag.help)}]{value if flag.takes_value else ''}'")
        rest = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        lines.append("      _arguments " + " \\\n        ".join([*parts, rest]) + " ;;")
    lines += ["  esac", "}", 'if [[ $funcstack[1] = _cutplane ]]; then _cutplane "$@"; else']
    lines += ["  compdef _cutplane cutplane", "fi"]
    return "\n".join(lines)


def _fish(commands: list[Command]) -> str:
    lines = ["# fish completion of cutplane"]
    for command in commands:
        lines.append(
            f"complete -c cutplane -n __fish_use_subcommand -f -a {command.name} "
            f"-d '{_quoted(command.help)}'"
        )
        here = f"complete -c cutplane -n '__fish_seen_subcommand_from {command.name}'"
        for flag in command.flags:
            dashes = "l" if flag.name.startswith("--") else "s"
            value = ""
            if flag.takes_value:
                value = f" -x -a '{' '.join(flag.values)}'" if flag.values else " -r"
            lines.append(
                f"{here} -{dashes} {flag.name.lstrip('-')}{value} -d '{_quoted(flag.help)}'"
            )
        if command.words:
            lines.append(f"{here} -f -a '{' '.join(command.words)}'")
    return "\n".join(lines)
