# SPDX-License-Identifier: MIT
"""The C headers: every language standard, both compilers, no padding; what may change in them and what may not."""

import os
import pathlib
import shutil
import subprocess

import doctored
import pytest

ROOT = pathlib.Path(os.environ["CIUIC_SOURCE"])
SDK = ROOT / "sdk/include"
SNAPSHOTS = sorted(p.parent for p in (ROOT / "abi").glob("*/freeze.h"))
NOTE = '#include <ciuic/abi/ciuic.h>\nCIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 1, 1, "c", "1.0.0", "");\n'
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Werror", "-fsyntax-only"]
LANGUAGES = [("c", s) for s in ("c99", "c11", "c17")] + [("c++", s) for s in ("c++17", "c++20")]


def compile_text(compiler, language, standard, include, text, flags=STRICT):
    command = [compiler, "-x", language, f"-std={standard}", *flags, f"-I{include}", f"-I{ROOT}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("include", [SDK] + [s / "include" for s in SNAPSHOTS], ids=lambda p: str(p.relative_to(ROOT)))
def test_headers_compile_everywhere(compiler, include):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    for language, standard in LANGUAGES:
        done = compile_text(compiler, language, standard, include, NOTE)
        assert done.returncode == 0, f"{compiler} -std={standard}: {done.stderr}"


@pytest.mark.parametrize("header", sorted(p.name for p in (SDK / "ciuic/abi").glob("*.h")))
def test_each_header_stands_alone(header):
    done = compile_text("gcc", "c", "c99", SDK, f"#include <ciuic/abi/{header}>\ntypedef int unused;\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", sorted(p.name for p in (SDK / "ciuic").glob("*.hpp")))
def test_each_header_of_the_cpp_layer_stands_alone(header):
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = compile_text("g++", "c++", "c++17", SDK, f"#include <ciuic/{header}>\n", flags)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("header", sorted(p.name for p in (ROOT / "sdk/testing/include/ciuic/testing").glob("*.hpp")))
def test_each_header_of_the_kit_stands_alone(header, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}/sdk/testing/include"]
    done = compile_text(compiler, "c++", "c++17", SDK, f"#include <ciuic/testing/{header}>\n", flags)
    assert done.returncode == 0, done.stderr


def freezes(include):
    done = compile_text("g++", "c++", "c++20", include, f'#include "{SNAPSHOTS[-1].relative_to(ROOT)}/freeze.h"\n', ["-fsyntax-only"])
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("change", doctored.LEGAL)
def test_freeze_passes_what_may_change(tmp_path, change):
    ok, errors = freezes(doctored.copy(SDK, tmp_path / "sdk", [doctored.LEGAL[change]]))
    assert ok, errors


@pytest.mark.parametrize("change", doctored.ILLEGAL)
def test_freeze_refuses_what_may_not_change(tmp_path, change):
    ok, errors = freezes(doctored.copy(SDK, tmp_path / "sdk", [doctored.ILLEGAL[change]]))
    assert not ok
    assert "static assertion failed" in errors


def test_newest_snapshot_is_of_the_headers_version():
    major, minor = (next(line.split()[2].rstrip("u") for line in (SDK / "ciuic/abi/types.h").read_text().splitlines()
                         if line.startswith(f"#define CIUIC_ABI_{part}")) for part in ("MAJOR", "MINOR"))
    assert SNAPSHOTS[-1].name == f"{major}.{minor}", "a new version needs a snapshot: abi/freeze"
    assert f"## {major}.{minor}" in (ROOT / "abi/BREAKS.md").read_text()


def test_headers_are_their_snapshot():
    """Before 1.0 any change is a break: set the minor number, write abi/BREAKS.md, run abi/freeze."""
    for header in (SNAPSHOTS[-1] / "include/ciuic/abi").glob("*.h"):
        now = SDK / "ciuic/abi" / header.name
        plain = ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c"]
        text = [subprocess.run([*plain, str(p)], capture_output=True, text=True, check=True).stdout.split() for p in (header, now)]
        assert text[0] == text[1], f"{header.name} changed without a new version"


def witness(folder, include):
    library = folder / "witness.so"
    subprocess.run(["gcc", "-g", "-O0", "-shared", "-fPIC", f"-I{include}", "-o", library, SNAPSHOTS[-1] / "witness.c"], check=True)
    return library


def abi_difference(folder, include):
    """abidiff's exit code and report against the approved baseline."""
    baseline = SNAPSHOTS[-1] / "witness.abi"
    done = subprocess.run(["abidiff", baseline, witness(folder, include)], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("abidiff") is None, reason="abidiff is not installed (package abigail-tools)")
def test_witness_equals_the_approved_baseline(tmp_path):
    code, report = abi_difference(tmp_path, SDK)
    assert code == 0, f"approve with abidw after reading this:\n{report}"


@pytest.mark.skipif(shutil.which("abidiff") is None, reason="abidiff is not installed (package abigail-tools)")
@pytest.mark.parametrize("change", ["slots in another order", "a slot with another type", "a member put in the middle"])
def test_witness_shows_a_break(tmp_path, change):
    code, _ = abi_difference(tmp_path, doctored.copy(SDK, tmp_path / "sdk", [doctored.ILLEGAL[change]]))
    assert code != 0
