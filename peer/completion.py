"""Scripts that complete ``distributary`` in bash, zsh and fish, made from the parsers of the commands.

The scripts are static: a key press starts no Python. Only the names of subscriptions are asked of the daemon,
where one is wanted. Made here rather than by a package: argcomplete starts Python at every key press, and shtab
does not know fish.
"""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass, field
from typing import Final

SHELLS: Final = ("bash", "zsh", "fish")
_FILES: Final = ("FILE", "PATH")
_FOLDERS: Final = ("DIR",)
NAMES: Final = "distributary completion names"


@dataclass(slots=True)
class Spot:
    """What can be written after some commands; ``takes``: what goes with an option: its choices, ``files``,
    ``folders`` or ``any``."""

    path: tuple[str, ...]
    about: str = ""
    commands: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    takes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    wants_subscription: bool = False
    wants_files: bool = False


def spots(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> list[Spot]:
    """List what a parser and its sub-commands take."""
    found, below = Spot(path), []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, sub in action.choices.items():
                found.commands[name] = helps.get(name, "")
                below += spots(sub, (*path, name))
        elif action.option_strings:
            for option in action.option_strings:
                found.options[option] = (action.help or "").replace("%%", "%")
                if action.nargs != 0:
                    found.takes[option] = _values(action)
        elif action.choices:
            found.words += tuple(map(str, action.choices))
        else:
            found.wants_subscription |= action.dest == "subscription"
            found.wants_files |= action.metavar in _FILES or action.dest in ("documents", "file")
    return [found, *below]


def _values(action: argparse.Action) -> tuple[str, ...]:
    if action.choices:
        return tuple(map(str, action.choices))
    metavar = str(action.metavar or "")
    if "|" in metavar:
        return tuple(word for word in metavar.split("|") if word.islower())
    return ("files",) if metavar in _FILES else ("folders",) if metavar in _FOLDERS else ("any",)


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for a shell."""
    found = spots(parser)
    if shell == "fish":
        return _fish(found)
    head = "#compdef distributary\nautoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return head + _bash(found)


def _bash(found: list[Spot]) -> str:
    cases, values = [], []
    for spot in found:
        key = shlex.quote(" ".join(spot.path))
        kind = "names" if spot.wants_subscription else "files" if spot.wants_files else "none"
        commands = shlex.quote(" ".join([*spot.commands, *spot.words]))
        cases.append(
            f"        {key}) commands={commands}; options={shlex.quote(' '.join(spot.options))}; kind={kind};;"
        )
        for option, allowed in spot.takes.items():
            key = shlex.quote(f"{' '.join(spot.path)} {option}".strip())
            values.append(f"        {key}) values={shlex.quote(' '.join(allowed))};;")
    return _BASH.replace("@CASES@", "\n".join(cases)).replace("@VALUES@", "\n".join(values))


_BASH: Final = """\
# Completes distributary in bash: eval "$(distributary completion bash)"
_distributary_spot() {
    case "$1" in
@CASES@
        *) commands=; options=; kind=none;;
    esac
}
_distributary_values() {
    case "$1" in
@VALUES@
        *) values=;;
    esac
}
_distributary() {
    local cur="${COMP_WORDS[COMP_CWORD]}" at="" home="" i word commands options kind values
    COMPREPLY=()
    _distributary_spot ""
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        [ "$word" = --home ] && home="${COMP_WORDS[i + 1]}"
        case "$word" in
            -*) _distributary_values "${at:+$at }$word"; [ -n "$values" ] && ((i++)); continue;;
        esac
        case " $commands " in
            *" $word "*) at="${at:+$at }$word"; _distributary_spot "$at";;
        esac
    done
    values=
    case "${COMP_WORDS[COMP_CWORD - 1]}" in
        -*) word="${COMP_WORDS[COMP_CWORD - 1]}"; _distributary_values "${at:+$at }$word";;
    esac
    case "$values" in
        any) return;;
        files) COMPREPLY=($(compgen -f -- "$cur")); return;;
        folders) COMPREPLY=($(compgen -d -- "$cur")); return;;
        ?*) COMPREPLY=($(compgen -W "$values" -- "$cur")); return;;
    esac
    case "$cur" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$cur")); return;;
    esac
    case "$kind" in
        names) commands="$(@NAMES@ ${home:+--home "$home"} 2>/dev/null)";;
        files) COMPREPLY=($(compgen -f -- "$cur")); return;;
    esac
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
}
complete -F _distributary distributary
""".replace("@NAMES@", NAMES)


def _fish(found: list[Spot]) -> str:
    lines = [
        "# Completes distributary in fish; it goes into ~/.config/fish/completions/distributary.fish",
        "function __distributary_at",
        "    set -l words (commandline -opc)",
        "    set -l seen",
        "    for word in $words[2..-1]",
        "        string match -q -- '-*' $word; or set -a seen $word",
        "    end",
        '    set -l wanted (string split " " -- $argv[1])',
        '    test -z "$argv[1]"; and set wanted',
        "    test (count $seen) -ge (count $wanted); or return 1",
        "    for i in (seq (count $wanted))",
        '        test "$seen[$i]" = "$wanted[$i]"; or return 1',
        "    end",
        "    set -q argv[2]; or return 0",
        "    test (count $seen) -eq (count $wanted)",
        "end",
        "complete -c distributary -f",
    ]
    for spot in found:
        here = shlex.quote(f"__distributary_at {shlex.quote(' '.join(spot.path))}")
        just = shlex.quote(f"__distributary_at {shlex.quote(' '.join(spot.path))} only")
        words = spot.commands | dict.fromkeys(spot.words, "")
        lines += [f"complete -c distributary -n {just} -a {w} -d {_fish_quoted(words[w])}" for w in words]
        if spot.wants_subscription:
            lines.append(f"complete -c distributary -n {here} -a '({NAMES} 2>/dev/null)'")
        if spot.wants_files:
            lines.append(f"complete -c distributary -n {here} -F")
        for option, about in spot.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(
                f"complete -c distributary -n {here} {flag} {_fish_takes(spot, option)}-d {_fish_quoted(about)}"
            )
    return "\n".join(lines) + "\n"


def _fish_takes(spot: Spot, option: str) -> str:
    match spot.takes.get(option):
        case None:
            return ""
        case ("any",):
            return "-x "
        case ("files",):
            return "-r -F "
        case ("folders",):
            return "-x -a '(__fish_complete_directories)' "
        case allowed:
            return f"-x -a {_fish_quoted(' '.join(allowed))} "


def _fish_quoted(text: str) -> str:
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
