"""Print a script that makes the shell complete commands, flags and their values. It needs
the package argcomplete.

examples:
  cutplane completion bash > ~/.local/share/bash-completion/completions/cutplane
  cutplane completion zsh > ~/.zfunc/_cutplane        with ~/.zfunc in fpath
  cutplane completion fish > ~/.config/fish/completions/cutplane.fish
"""

from __future__ import annotations

import argparse
from typing import Any

from .errors import CommandError, ExitCode
from .parser import Argument

FLAGS = {"": (Argument("SHELL", "The shell that you use.", choices=("bash", "zsh", "fish")),)}


def run(args: argparse.Namespace) -> int:
    """Print the script; returns the exit code."""
    print(argcomplete().shellcode(["cutplane"], shell=args.shell))
    return ExitCode.OK


def argcomplete() -> Any:
    """The package that answers the shell from the parsers themselves."""
    try:
        import argcomplete
    except ImportError:
        raise CommandError(
            "completion needs the package argcomplete: pip install argcomplete"
        ) from None
    return argcomplete
