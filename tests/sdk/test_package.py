# SPDX-License-Identifier: MIT
"""The SDK as a stranger gets it: an installed prefix, no tree, no LibTorch, no Boost."""

import json
import pathlib
import re
import shutil

import pytest

from conftest import BUILD, ROOT, build_project, run

EXAMPLES = {"csv": "profiler", "signum": "optimizer", "hub": "communicator", "striped": "batch_scheduler"}


def test_sdk_holds_nothing_of_the_host(prefix):
    """Headers of the SDK include the standard library and themselves; nothing of LibTorch or Boost is installed with it."""
    headers = list((prefix / "include").rglob("*.h")) + list((prefix / "include").rglob("*.hpp"))
    assert headers
    for header in headers:
        for included in re.findall(r'#include [<"]([^>"]+)[>"]', header.read_text()):
            assert "/" not in included or included.startswith(("ciuic/", "sys/", "netinet/", "arpa/")), f"{header}: {included}"
    names = {p.name for p in prefix.rglob("*")}
    assert "ciuicConfig.cmake" in names and "ciuic-check" in names
    assert not {n for n in names if "torch" in n or "boost" in n}
    needed = run("readelf", "-d", prefix / "bin/ciuic-check")
    assert "torch" not in needed and "boost" not in needed


def test_package_names_no_path_of_this_machine(prefix):
    for file in list((prefix / "lib").rglob("*.cmake")) + list((prefix / "lib").rglob("*.pc")):
        assert str(ROOT) not in file.read_text(), file
        assert str(BUILD) not in file.read_text(), file


@pytest.fixture(scope="module")
def examples(prefix, tmp_path_factory):
    """The installed example, copied away from everything and built with Boost and LibTorch out of reach."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(prefix / "share/ciuic/example", folder / "src")
    build_project(folder / "src", folder / "build", prefix, "-DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_LibTorch=ON")
    return folder / "build"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_passes_the_kit(examples, prefix, name):
    run(prefix / "bin/ciuic-check", examples / f"lib{name}.so", timeout=280)


def test_example_has_its_conformance_tests(examples):
    listed = run("ctest", "--test-dir", examples, "-N")
    for name, kind in EXAMPLES.items():
        assert f"conformance.{kind}.{name}" in listed


RUN = """
[run]
name = "stranger"
output = "run"
steps = 4
ranks = 2
threads = 1
[plugins]
path = ["{examples}"]
[model]
preset = "tiny"
[data]
train = ["text.txt"]
sequence_tokens = 32
[validation]
every = "never"
[communicator]
plugin = "hub"
[optimizer]
plugin = "signum"
[batch_scheduler]
plugin = "striped"
[batch_scheduler.striped]
sequences = 2
[profiler]
plugins = ["csv"]
[schedule]
learning_rate = 1e-3
"""


def test_example_trains_in_the_installed_ciuic(examples, full_prefix, tmp_path):
    """Four plugins by a stranger, from another build, in a binary that knows none of them."""
    if not (full_prefix / "bin/ciuic-worker").exists():
        pytest.skip("built without LibTorch: there is no worker")
    (tmp_path / "text.txt").write_text("In the beginning was the Word, and the Word was with God. " * 400)
    (tmp_path / "run.toml").write_text(RUN.format(examples=examples))
    run(full_prefix / "bin/ciuic", "train", "run.toml", cwd=tmp_path)
    steps = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in steps if line["type"] == "step"]
    assert len(losses) == 4
    assert losses[-1] < losses[0]
    rows = next(pathlib.Path(tmp_path).rglob("events.csv")).read_text().splitlines()
    assert rows[0].startswith("time_ns,") and len(rows) > 20
