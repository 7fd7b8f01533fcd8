# SPDX-License-Identifier: MIT
"""An installed ciuic in a folder of its own, made once."""

import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["CIUIC_BUILD_DIR"])
ROOT = pathlib.Path(os.environ["CIUIC_SOURCE_DIR"])


def clean_environment():
    """No search path, rank or package location of the caller."""
    drop = ("CIUIC_PLUGIN_PATH", "RANK", "WORLD_SIZE", "CMAKE_PREFIX_PATH", "ciuic_DIR", "LD_LIBRARY_PATH")
    return {k: v for k, v in os.environ.items() if k not in drop}


def run(*command, cwd=None, code=0, timeout=300):
    done = subprocess.run([str(c) for c in command], cwd=cwd, env=clean_environment(), capture_output=True, text=True, timeout=timeout,
                          check=False)
    assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """The SDK alone."""
    folder = tmp_path_factory.mktemp("sdk")
    run("cmake", "--install", BUILD, "--component", "sdk", "--prefix", folder)
    return folder


@pytest.fixture(scope="session")
def full_prefix(tmp_path_factory):
    """SDK, host and plugins."""
    folder = tmp_path_factory.mktemp("ciuic")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def build_project(source, build, prefix, *options):
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", build)
