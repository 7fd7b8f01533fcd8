# SPDX-License-Identifier: MIT
"""The Markdown pages of the tree, taken apart: code blocks, links, headings, tables, command lines."""
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language=None):
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(page, line, match[1], match[2]))
    return [b for b in found if language is None or b.language == language]


def prose(page):
    """A page without its code blocks."""
    return FENCE.sub("", page.read_text())


def links(page):
    """Targets of the links outside code."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page):
    """What GitHub makes of the headings."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def table(page, first_header):
    """The rows of the table whose first column has this header, as lists of cells."""
    rows = []
    in_table = False
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            in_table = False
        elif cells[0] == first_header:
            in_table = True
        elif in_table and not set(cells[0]) <= {"-", ":"}:
            rows.append(cells)
    return rows


def names_in(cell):
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def command_lines():
    """(where, words) of every command of ours: in shell blocks and in backquotes."""
    found = []
    for block in blocks("sh"):
        found += [(str(block), line) for line in block.text.splitlines()]
    for page in PAGES:
        found += [(str(page.relative_to(ROOT)), code) for code in re.findall(r"`([^`\n]+)`", prose(page))]
    commands = []
    for where, line in found:
        if not re.match(r"(\w+=\S+ )*(build/bin/ciuic|ciuic|tools/\w+)( |$)", line) or (ROOT / line).is_dir():
            continue
        words = shlex.split(line, comments=True)
        while "=" in words[0]:
            words.pop(0)
        commands.append((where, words))
    return commands
