"""Shell completion of commands and options, generated from the parser."""

from __future__ import annotations

import argparse
import re
import shlex

from coldframe.cli.options import Commands, add_command

SHELLS = ["bash", "zsh", "fish"]


def add_parsers(commands: Commands) -> None:
    """Adds `completion`."""
    parser = add_command(
        commands,
        "completion",
        """coldframe completion bash > ~/.local/share/bash-completion/completions/coldframe
coldframe completion zsh > ~/.zfunc/_coldframe        # with ~/.zfunc in fpath
coldframe completion fish > ~/.config/fish/completions/coldframe.fish""",
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=_print)


def _print(args: argparse.Namespace) -> None:
    from coldframe.cli.commands import parser_of_all

    print(script(parser_of_all(), args.shell))


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands_of(parser))


def commands_of(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The commands by name, with help and parser."""
    commands: dict[str, tuple[str, argparse.ArgumentParser]] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands.update({name: (helps.get(name, ""), inner) for name, inner in action.choices.items()})
    return commands


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [a for a in parser._actions if a.option_strings and a.help is not argparse.SUPPRESS]


def _option_names(parser: argparse.ArgumentParser) -> str:
    return " ".join(option for action in _options(parser) for option in action.option_strings)


def _values(action: argparse.Action) -> list[str]:
    """The known values of an argument; for options of formats `NAME=VALUE`, or `NAME=` alone."""
    return [str(value) for value in action.choices or getattr(action, "known_values", [])]


def _choices(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """The options with a fixed set of values: a pattern of their names, and the values."""
    return [
        ("|".join(action.option_strings), " ".join(_values(action)))
        for action in _options(parser)
        if _values(action)
    ]


def _positional(parser: argparse.ArgumentParser) -> str:
    """The fixed values of a positional argument."""
    values = [a.choices for a in parser._actions if not a.option_strings and a.choices is not None]
    return " ".join(map(str, values[0])) if values else ""


def _bash(commands: dict[str, tuple[str, argparse.ArgumentParser]]) -> str:
    cases = []
    for name, (_, parser) in commands.items():
        inner = "".join(
            f'\n        {options}) _coldframe_values "{values}"; return ;;'
            for options, values in _choices(parser)
        )
        before = f'\n      case "$before" in{inner}\n      esac' if inner else ""
        cases.append(
            f'    {name}){before}\n      options="{_option_names(parser)}"; values="{_positional(parser)}" ;;'
        )
    body = "\n".join(cases)
    return f"""# bash completion of coldframe
_coldframe_values() {{
  COMPREPLY=($(compgen -W "$1" -- "$word"))
  # The value follows NAME= directly.
  case "${{COMPREPLY[0]}}" in *=) compopt -o nospace 2>/dev/null ;; esac
  # bash ends a word at =, and completes the part after it.
  case "$word" in *=*) COMPREPLY=("${{COMPREPLY[@]#"${{word%%=*}}="}}") ;; esac
}}
_coldframe() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" options="" values=""
  # --option NAME=VALUE arrives as three words.
  if [ "$word" = "=" ] && [ "$COMP_CWORD" -ge 3 ]; then
    word="$before=" before="${{COMP_WORDS[COMP_CWORD-2]}}"
  elif [ "$before" = "=" ] && [ "$COMP_CWORD" -ge 4 ]; then
    word="${{COMP_WORDS[COMP_CWORD-2]}}=$word" before="${{COMP_WORDS[COMP_CWORD-3]}}"
  fi
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version --no-pager --verbose" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{body}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$word") $(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _coldframe coldframe"""


def _plain(text: str) -> str:
    """A help text without the special characters of shells."""
    return re.sub(r"[\\\[\]:'\"`$]", " ", text.replace("%%", "%")).strip()


def _zsh(commands: dict[str, tuple[str, argparse.ArgumentParser]]) -> str:
    listed = "\n".join(f"    '{name}:{_plain(summary)}'" for name, (summary, _) in commands.items())
    cases = []
    for name, (_, parser) in commands.items():
        lines = []
        for action in _options(parser):
            takes = "" if action.nargs == 0 else f":{_plain(str(action.metavar or action.dest))}:"
            if takes:
                takes += f"({' '.join(_values(action))})" if _values(action) else "_files"
            for option in action.option_strings:
                lines.append(f"        '{option}[{_plain(action.help or '')}]{takes}'")
        values = _positional(parser)
        rest = f"'*:value:({values})'" if values else "'*:file:_files'"
        cases.append(
            f"    {name})\n      _arguments \\\n" + " \\\n".join([*lines, f"        {rest}"]) + " ;;"
        )
    body = "\n".join(cases)
    return f"""#compdef coldframe
_coldframe() {{
  local -a commands
  commands=(
{listed}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local command="$words[2]"
  shift words; (( CURRENT-- ))
  case "$command" in
{body}
  esac
}}
# In fpath, the first call runs this file as the function; otherwise it was sourced.
if [[ "$funcstack[1]" == _coldframe ]]; then
  _coldframe "$@"
else
  compdef _coldframe coldframe
fi"""


def _fish(commands: dict[str, tuple[str, argparse.ArgumentParser]]) -> str:
    lines = ["# fish completion of coldframe"]
    for name, (summary, parser) in commands.items():
        lines.append(
            f"complete -c coldframe -n __fish_use_subcommand -f -a {name} -d {shlex.quote(_plain(summary))}"
        )
        if values := _positional(parser):
            lines.append(
                f"complete -c coldframe -n '__fish_seen_subcommand_from {name}' -f -a {shlex.quote(values)}"
            )
        for action in _options(parser):
            names = " ".join(
                f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                for option in action.option_strings
            )
            values = "" if action.nargs == 0 else " -r"
            if _values(action):
                values = f" -x -a {shlex.quote(' '.join(_values(action)))}"
            lines.append(
                f"complete -c coldframe -n '__fish_seen_subcommand_from {name}' {names}{values} "
                f"-d {shlex.quote(_plain(action.help or ''))}"
            )
    return "\n".join(lines)
