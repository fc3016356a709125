"""Arguments of the commands: argparse, stricter, and with flags that depend on other flags.

Flags are spelled out, with ``-`` or ``_`` inside. What is not known is an error that names what is
near.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

Prepare = Callable[["Parser", list[str]], None]


class Parser(argparse.ArgumentParser):
    """A parser of arguments.

    Parameters
    ----------
    prepare : callable, optional
        Called with the parser and its arguments before they are parsed; may add flags.
    hint : callable, optional
        What to say about a flag that is not known, if anything.
    options
        Those of ``argparse.ArgumentParser``.
    """

    def __init__(
        self,
        *,
        prepare: Prepare | None = None,
        hint: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)
        self._prepare = prepare
        self._hint = hint
        self.aliases: dict[str, str] = {}

    def prepare(self, arguments: list[str]) -> None:
        """Add the flags that these arguments make possible, once."""
        if self._prepare is not None:
            prepare, self._prepare = self._prepare, None
            prepare(self, arguments)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse all arguments; there are no others."""
        arguments = dashes(list(args or []))
        self.prepare(arguments)
        arguments = [self._alias(argument) for argument in arguments]
        # Commands have parsers of their own, which leave nothing.
        namespace, rest = super().parse_known_args(arguments, namespace)
        if rest:
            self._refuse(rest)
        return namespace, []

    def _alias(self, argument: str) -> str:
        name, equals, value = argument.partition("=")
        return self.aliases.get(name, name) + equals + value

    def flags(self) -> list[str]:
        """All long flags."""
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

    def flag_of(self, parameter: str) -> str | None:
        """The flag of a parameter of the library, if it has one."""
        flag = self._alias("--" + parameter.replace("_", "-"))
        return flag if flag in self._option_string_actions else None

    def _refuse(self, rest: list[str]) -> NoReturn:
        flag = next((word for word in rest if word.startswith("-") and word != "-"), None)
        if flag is None:
            self.error(f"too many arguments: {' '.join(rest)}")
        flag = flag.partition("=")[0]
        hint = self._hint(flag) if self._hint is not None else ""
        if not hint:
            near = difflib.get_close_matches(flag, self.flags(), 1, 0.7)
            hint = f"; did you mean {near[0]}?" if near else f"; see {self.prog} --help"
        self.error(f"unknown flag {flag}{hint}")


def dashes(arguments: list[str]) -> list[str]:
    """``--max_iter`` is ``--max-iter``; arguments behind a lone ``--`` stay as they are."""
    out: list[str] = []
    for k, argument in enumerate(arguments):
        if argument == "--":
            return out + arguments[k:]
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            argument = name.replace("_", "-") + equals + value
        out.append(argument)
    return out
