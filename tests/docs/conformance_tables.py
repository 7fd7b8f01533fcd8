# SPDX-License-Identifier: MIT
"""The generated parts of docs/conformance.md: its tests, mutants and unusual plugins. Run as a program to write them."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CIUIC_BUILD_DIR", ROOT / "build"))
PAGE = ROOT / "docs" / "conformance.md"


def tests_table():
    command = [BUILD / "bin/ciuic-check", "--list", "--format", "md"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def rows(name):
    text = (BUILD / "tests/mutants" / name).read_text()
    return sorted(line.split("|") for line in text.splitlines() if line)


def mutants_table():
    lines = [f"| `{library}` | `{plugin or '(all)'}` | {what} | `{test}` |" for library, plugin, test, what in rows("mutants.txt")]
    return "\n".join(["| library | plugin | what is broken | caught by |", "|---|---|---|---|", *lines])


def unusual_table():
    lines = [f"| `{library}` | `{plugin or '(all)'}` | {what} |" for library, plugin, what in rows("unusual.txt")]
    return "\n".join(["| library | plugin | what is unusual |", "|---|---|---|", *lines])


def features_table():
    """From the comment of features.hpp, where they are listed."""
    text = (ROOT / "sdk/testing/include/ciuic/testing/features.hpp").read_text()
    lines = []
    for names, meaning in re.findall(r"^//   (\S+(?: \S+)*?)  +(\S.*)$", text, re.MULTILINE):
        first = names.split()[0]
        full = [n if not n.startswith(":") else first.split(":")[0] + n for n in names.split()]
        lines.append(f"| {', '.join(f'`{n}`' for n in full)} | {meaning} |")
    return "\n".join(["| feature | says that |", "|---|---|", *lines])


PARTS = {"features": features_table, "tests": tests_table, "mutants": mutants_table, "unusual": unusual_table}


def with_tables(text):
    """The page with each table between its two marks."""
    for name, make in PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        head, rest = text.split(begin)
        tail = rest.split(end)[1] if end in rest else rest
        text = f"{head}{begin}\n\n{make()}\n\n{end}{tail}"
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
