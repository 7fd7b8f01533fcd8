# SPDX-License-Identifier: MIT
"""A host of 1.0 with a plugin of 1.1 and the reverse, under ASan and UBSan, with every struct at the end of a page."""

import os
import pathlib
import subprocess

import doctored
import pytest

ROOT = pathlib.Path(os.environ["CIUIC_SOURCE"])
HERE = ROOT / "tests/abi"
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
VERSIONS = {"0.2": None, "1.0": (1, 0), "1.1": (1, 1), "2.0": (2, 0)}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Hosts and plugins of each version."""
    folder = tmp_path_factory.mktemp("skew")
    jobs = []
    for name, version in VERSIONS.items():
        newer = version is not None and version[1] > 0
        include = doctored.copy(ROOT / "sdk/include", folder / f"sdk-{name}", doctored.APPENDED if newer else [], version)
        flags = ["-std=c++20", *SANITIZED, f"-I{include}", f"-I{ROOT}"] + (["-DCIUIC_DOCTORED"] if newer else [])
        jobs.append(["g++", *flags, "-o", folder / f"host-{name}", HERE / "skew_host.cpp", ROOT / "core/plugin/abi_policy.cpp", "-ldl"])
        jobs.append(["g++", *flags, "-shared", "-fPIC", "-fvisibility=hidden", "-o", folder / f"plugin-{name}.so", HERE / "skew_plugin.cpp"])
    for job in jobs:
        subprocess.run(job, check=True)
    return folder


def run(built, host, plugin):
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([built / f"host-{host}", built / f"plugin-{plugin}.so"], capture_output=True, text=True, timeout=60,
                          check=False, env=environment)


# events, extras, annotations, host clock, service
@pytest.mark.parametrize("host, plugin, seen", [
    ("1.0", "1.0", "3 0 0 0 0"),
    ("1.0", "1.1", "3 0 0 0 0"),
    ("1.1", "1.0", "3 0 0 0 0"),
    ("1.1", "1.1", "3 3 1 1 1"),
])
def test_any_minor_runs_with_any_other(built, host, plugin, seen):
    done = run(built, host, plugin)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == seen


@pytest.mark.parametrize("host, plugin", [("0.2", "1.0"), ("1.0", "0.2"), ("1.1", "2.0"), ("2.0", "1.1")])
def test_another_major_offers_nothing(built, host, plugin):
    done = run(built, host, plugin)
    assert done.returncode == 1
    assert "no plugin for ABI major" in done.stderr


def test_guard_pages_guard(built, tmp_path):
    """The test can fail: a plugin of 1.1 that reads an appended member without asking dies on a host of 1.0."""
    source = (HERE / "skew_plugin.cpp").read_text()
    careless = source.replace("CIUIC_HAS(&e, extra) && e.extra", "e.extra")
    assert careless != source
    (tmp_path / "skew_plugin.cpp").write_text(careless)
    flags = ["-std=c++20", *SANITIZED, f"-I{built}/sdk-1.1", f"-I{HERE}", "-DCIUIC_DOCTORED", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, "-o", built / "plugin-careless.so", tmp_path / "skew_plugin.cpp"], check=True)
    done = run(built, "1.0", "careless")
    assert done.returncode != 0
    assert "AddressSanitizer: SEGV" in done.stderr
