# SPDX-License-Identifier: MIT
"""One plugin by every toolchain in one host: created, called, made to fail. docs/plugin_abi.md says what holds for each."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(os.environ["CIUIC_SOURCE"])
HERE = ROOT / "tests/abi"
SDK = f"-I{ROOT}/sdk/include"
SHARED = ["-O1", "-fPIC", "-shared", "-fvisibility=hidden", f"-Wl,--version-script={ROOT}/cmake/plugin.map", "-Wl,-z,defs,-z,now"]
TOOLCHAINS = {
    "g++ C++17": ["g++", "-std=c++17", "-fno-gnu-unique"],
    "g++ C++20": ["g++", "-std=c++20", "-fno-gnu-unique"],
    "clang++": ["clang++", "-std=c++17"],
    "clang++ libc++": ["clang++", "-std=c++17", "-stdlib=libc++"],
    "g++ static libstdc++": ["g++", "-std=c++17", "-fno-gnu-unique", "-static-libstdc++", "-static-libgcc"],
    "clang++ static libstdc++": ["clang++", "-std=c++17", "-static-libstdc++", "-static-libgcc"],
    "g++ without exceptions": ["g++", "-std=c++17", "-fno-gnu-unique", "-fno-exceptions", "-fno-rtti"],
    "clang++ without exceptions": ["clang++", "-std=c++17", "-fno-exceptions", "-fno-rtti"],
    "gcc C99": ["gcc", "-std=c99"],
    "clang C99": ["clang", "-std=c99"],
    # The default of some systems: a property note of its own, padded to eight bytes.
    "gcc C99 with CET": ["gcc", "-std=c99", "-fcf-protection=full", "-Wl,-z,ibt", "-Wl,-z,shstk"],
}
EXPECTED = """never: seen 1
create: data loss, peer 3: failed on request in create
flush: data loss, peer 3: failed on request in flush
"""


def has_libcpp():
    done = subprocess.run(["clang++", "-stdlib=libc++", "-x", "c++", "-fsyntax-only", "-"], input="#include <string>\n",
                          capture_output=True, text=True, check=False)
    return done.returncode == 0


def build(folder, toolchain, source_stem="toolchain_plugin"):
    command = TOOLCHAINS[toolchain]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    if "-stdlib=libc++" in command and not has_libcpp():
        pytest.skip("libc++ is not installed (package libc++-dev)")
    source = HERE / f"{source_stem}.{'c' if command[0] in ('gcc', 'clang') else 'cpp'}"
    library = folder / "libmatrix.so"
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror", SDK, *SHARED, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    program = tmp_path_factory.mktemp("host") / "toolchain_host"
    subprocess.run(["g++", "-std=c++20", "-O1", SDK, f"-I{ROOT}/sdk/testing/include", "-o", program, HERE / "toolchain_host.cpp",
                    "-ldl", "-pthread"], check=True)
    return program


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_plugin_is_created_called_and_fails_cleanly(host, tmp_path, toolchain):
    done = subprocess.run([host, build(tmp_path, toolchain)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_plugin_is_accepted_by_ciuic(tmp_path, toolchain):
    library = build(tmp_path, toolchain)
    command = [os.environ["CIUIC_BIN"], "plugin", "inspect", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "matrix" in done.stdout


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_library_exports_one_symbol_and_carries_its_note(tmp_path, toolchain):
    library = build(tmp_path, toolchain)
    subprocess.run(["strip", library], check=True)
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split("\n")
    names = [line.split()[-1] for line in symbols if line]
    assert names == ["ciuic_plugin_query"]
    assert "ciuic" in subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
