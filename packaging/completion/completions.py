#!/usr/bin/env python3
"""Make the completions for a shell from the option table of the program.

Usage: completions.py TABLE.json TEMPLATE.in, where TEMPLATE is bash, zsh or fish
"""

import json
import pathlib
import re
import sys

# The options whose values are in the store: they are columns of `idem list`.
LISTED = ("key", "scope")


def quoted(text):
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


def bash_value(option):
    if option["name"] in LISTED:
        return f"_idem_offer {option['name']}; return"
    if "choices" in option:
        return f"words='{' '.join(option['choices'])}'"
    return "compopt -o default; return" if option["arg"] == "FILE" else "return"


def bash(commands):
    rows = []
    for command in commands:
        for option in command["options"]:
            if "arg" in option:
                forms = ["--" + option["name"]]
                forms += ["-" + option["letter"]] if "letter" in option else []
                pattern = " | ".join(f"'{command['name']} {form}'" for form in forms)
                rows.append(f"    {pattern}) {bash_value(option)} ;;")
    for command in commands:
        words = command.get("operands", []) + ["--" + o["name"] for o in command["options"]]
        keys = "[[ $cur != -* ]] && { _idem_offer key; return; }; "
        rows.append(f"    '{command['name']} '*) {keys if command['takes_key'] else ''}"
                    f"words='{' '.join(words + ['--help'])}' ;;")  # fmt: skip
    return {"ROWS": rows, "NAMES": [" ".join([c["name"] for c in commands] + ["help"])]}


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def zsh_value(option):
    if "choices" in option:
        return f"({' '.join(option['choices'])})"
    if option["name"] in LISTED:
        return f" _idem_offer {option['name']}"  # Without the space, words would be added.
    return "_files" if option["arg"] == "FILE" else "_idem_value"


def zsh_option(option):
    """A specification for _arguments; a letter and its name are one option."""
    name, is_flag = "--" + option["name"], "arg" not in option
    form = f"'{name}{'' if is_flag else '='}"
    if "letter" in option:
        letter = "-" + option["letter"]
        form = f"'({letter} {name})'{{{letter}{'' if is_flag else '+'},{form[1:]}}}'"
    value = "" if is_flag else f":{option['arg']}:{zsh_value(option)}"
    return f"{form}[{zsh_text(option['help'])}]{value}'"


def zsh(commands):
    rows = []
    for command in commands:
        words = ["_arguments -s", *map(zsh_option, command["options"])]
        words.append("'(- *)--help[show help]'")
        if command["takes_key"]:
            words.append("'1:KEY: _idem_offer key'")
        if "operands" in command:
            words.append(f"'1:what:({' '.join(command['operands'])})'")
        joined = " \\\n            ".join(words)
        rows.append(f"    {command['name']})\n        {joined} ;;")
    names = [f"        '{c['name']}:{zsh_text(c['summary'])}'" for c in commands]
    return {"ROWS": rows, "NAMES": [*names, "        'help:show the help of a command'"]}


def fish_value(option):
    if "choices" in option:
        return f" -x -a '{' '.join(option['choices'])}'"
    if option["name"] in LISTED:
        return f" -x -a '(__idem_list {option['name']})'"
    return " -rF" if option["arg"] in ("FILE", "WHAT") else " -x"


def fish(commands):
    rows = []
    for command in commands:
        name = command["name"]
        within = f"complete -c idem -n '__idem_in {name}'"
        rows.append(f"complete -c idem -n __fish_use_subcommand -a {name} "
                    f"-d {quoted(command['summary'])}")  # fmt: skip
        if "operands" in command:
            rows.append(f"{within} -a '{' '.join(command['operands'])}'")
        elif command["takes_key"]:
            rows.append(f"{within} -a '(__idem_list key)'")
        for o in command["options"]:
            letter = f" -s {o['letter']}" if "letter" in o else ""
            value = fish_value(o) if "arg" in o else ""
            rows.append(f"{within} -l {o['name']}{letter}{value} -d {quoted(o['help'])}")
    return {"ROWS": rows}


def main():
    table, template = map(pathlib.Path, sys.argv[1:])
    read = json.loads(table.read_text(encoding="utf-8"))
    lists = {"fields": read["fields"].split(), "status": read["statuses"]}
    for command in read["commands"]:
        for option in command["options"]:
            if option["name"] in lists:
                option["choices"] = lists[option["name"]]
    parts = {"bash": bash, "zsh": zsh, "fish": fish}[template.stem](read["commands"])
    text = template.read_text(encoding="utf-8")
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    sys.stdout.write(text)


main()
