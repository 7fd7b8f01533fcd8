# SPDX-License-Identifier: MIT
"""ciuic plugin new: every kind, in both languages, builds and passes the kit as it comes."""

import subprocess

import pytest

from conftest import BUILD, build_project, run

KINDS = ["communicator", "sharding", "optimizer", "precision", "batch_scheduler", "checkpoint", "profiler"]
CIUIC = BUILD / "bin/ciuic"


@pytest.mark.parametrize("language", ["cpp", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_new_project_is_right_at_once(prefix, tmp_path, kind, language):
    run(CIUIC, "plugin", "new", kind, "mine", *(["--c"] if language == "c" else []), cwd=tmp_path)
    build_project(tmp_path / "mine", tmp_path / "mine/build", prefix, "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror",
                  "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    library = tmp_path / "mine/build/libmine.so"
    assert f"{kind} mine" in run(CIUIC, "plugin", "inspect", library)
    said = run(CIUIC, "plugin", "check", library, timeout=280)
    assert kind != "communicator" or "not tried, as the plugin does not offer it" in said, "it serves one rank"


def test_output_says_what_comes_next(tmp_path):
    out = run(CIUIC, "plugin", "new", "profiler", "mine", cwd=tmp_path)
    assert "cmake -G Ninja -S mine" in out and f"\n  {CIUIC} plugin check mine/build/libmine.so" in out, "as it was started"


@pytest.mark.parametrize("arguments, says", [
    (["profilers", "mine"], "expected one of communicator"),
    (["profiler", "Mine"], "expected 1 to 40 of a-z"),
    (["profiler", "../mine"], "expected 1 to 40 of a-z"),
    (["profiler"], "NAME"),
    ([], "KIND"),
])
def test_bad_arguments(tmp_path, arguments, says):
    done = subprocess.run([str(CIUIC), "plugin", "new", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").write_text("x")
    run(CIUIC, "plugin", "new", "profiler", "mine", cwd=tmp_path, code=2)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["precious"]
