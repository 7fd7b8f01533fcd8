# SPDX-License-Identifier: MIT
"""Plugins that are missing, refused or fail to start: exit 3, with the file and what was expected."""
import re
import subprocess

import pytest

from conftest import SOURCE, assert_fault, assert_no_run

INCLUDE = SOURCE / "sdk/include"
ABI_MINOR = int(re.search(r"CIUIC_ABI_MINOR (\d+)u", (INCLUDE / "ciuic/abi/types.h").read_text())[1])
NOTE = """
#include <ciuic/abi/note.h>
CIUIC_NOTE_1(CIUIC_KIND_PRECISION, 0, 1, 1, "%s", "1.0.0", "");
"""

OTHER_ABI = """
#include <ciuic/abi/ciuic.h>
#include <ciuic/abi/note.h>
__attribute__((section(CIUIC_NOTE_SECTION), used, aligned(4))) static const ciuic_note_of_one note = {
  {6u, sizeof(ciuic_note_header) + sizeof(ciuic_note_record), CIUIC_NOTE_TYPE, "ciuic"},
  {CIUIC_NOTE_LAYOUT, 1u, %s, %s, CIUIC_SDK_VERSION}, {CIUIC_KIND_PRECISION, 0, 1, 1, "alien", "1.0.0", ""}};
static const ciuic_descriptor d = {
  .struct_size = sizeof(ciuic_descriptor), .abi_major = %s, .abi_minor = %s, .kind = CIUIC_KIND_PRECISION,
  .state_schema = 1, .state_schema_min = 1, .name = "alien", .version = "1.0.0", .license = "MIT", .summary = "x" };
const ciuic_descriptor* ciuic_plugin_query(uint32_t abi_major, uint32_t index) { return index == 0 ? &d : 0; }
"""

THROWS = """
#include <ciuic/precision.hpp>
#include <stdexcept>
class Thrower final : public ciuic::Precision {
 public:
  static constexpr const char* name = "thrower";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "cannot start";
  explicit Thrower(const ciuic::Context& c) : Precision(c) { throw std::runtime_error("the moon is not full"); }
  ciuic_dtype dtype_for(std::string_view, uint32_t) const override { return ciuic::kF32; }
};
"""
FAILS_IN_SDK = THROWS + "CIUIC_PLUGINS(Thrower)\n"
# No SDK catches this one: an exception comes over the line.
RAW_THROW = THROWS + NOTE % "thrower" + """
static ciuic_status* create(const ciuic_create_args*, ciuic_instance**) {
  throw std::runtime_error("the moon is not full");
}
extern "C" __attribute__((visibility("default"))) const ciuic_descriptor* ciuic_plugin_query(uint32_t major, uint32_t index) {
  static ciuic_descriptor d = [] { auto x = ciuic::detail::make_descriptor<Thrower>(); x.create = &create; return x; }();
  return major == CIUIC_ABI_MAJOR && index == 0 ? &d : nullptr;
}
"""


@pytest.fixture(autouse=True)
def own_caches(tmp_path, monkeypatch):
    """What crashes here is in quarantine here alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))


def compile_plugin(work, name, source, language="c"):
    folder = work / "own"
    folder.mkdir(exist_ok=True)
    file = folder / f"lib{name}.so"
    compiler = ["cc", "-std=gnu11", "-xc"] if language == "c" else ["c++", "-std=c++17", "-xc++"]
    subprocess.run([*compiler, "-", "-shared", "-fPIC", f"-I{INCLUDE}", "-o", file], input=source, text=True, check=True)
    return file


def refuse(work, name, *said, kind="precision"):
    work.config({"plugins.path": ["own"], f"{kind}.plugin": name})
    result = work.run("train", "run.toml")
    assert_fault(result, 3, f'"{name}"', *said)
    assert_no_run(work)
    assert_fault(work.run("config", "check", "run.toml"), 3, *said)
    return result


def refused_line(work, file):
    listing = work.run("plugin", "list", "--path", "own")
    assert listing.code == 0, listing
    return next(line for line in listing.out.splitlines() if line.startswith("refused") and str(file.name) in line)


@pytest.mark.parametrize("kind, there", [
    ("communicator", ["gloo", "local", "shm"]), ("sharding", ["ddp", "zero1", "zero2", "zero3"]), ("optimizer", ["adamw", "lion", "muon", "sgd"]),
    ("precision", ["bf16", "fp16", "fp32", "fp8_block"]), ("batch_scheduler", ["fixed", "ramp"]), ("checkpoint", ["safetensors", "sharded"]),
])
def test_unknown_plugin_lists_paths_and_all_of_its_kind(work, kind, there):
    work.config({"plugins.path": ["own"], f"{kind}.plugin": "nosuch"})
    result = work.run("train", "run.toml", env={"CIUIC_PLUGIN_PATH": "/from/environment"})
    folders = ["own", "/from/environment", str(work.ciuic.parent.parent / "plugins"), "lib/ciuic/plugins"]
    assert_fault(result, 3, kind, '"nosuch"', *there, *(f"looked in {f}" for f in folders[:3]), folders[3],
                 remedy="plugins.path")
    assert_no_run(work)


def test_unknown_profiler(work):
    work.config({"profiler.plugins": ["monitor", "nosuch"]})
    assert_fault(work.run("train", "run.toml"), 3, "profiler", '"nosuch"', "monitor")
    assert_no_run(work)


def test_plugin_of_another_kind(work):
    work.config({"precision.plugin": "adamw"})
    assert_fault(work.run("train", "run.toml"), 3, "precision", '"adamw"', "fp32")
    assert_no_run(work)


def test_name_that_is_a_path(work):
    work.config({"precision.plugin": "../own/libx"})
    assert work.run("train", "run.toml").code in (2, 3)
    assert_no_run(work)


def test_text_file(work):
    (work / "own").mkdir()
    file = work / "own/libtext.so"
    file.write_text("I am a text.\n")
    refuse(work, "text", str(file.relative_to(work.path)))
    assert "libtext.so" in refused_line(work, file)
    assert_fault(work.run("plugin", "inspect", "own/libtext.so"), 3, "libtext.so")


def test_empty_file(work):
    (work / "own").mkdir()
    (work / "own/libnothing.so").write_bytes(b"")
    refuse(work, "nothing", "libnothing.so")


def test_truncated_library(work):
    (work / "own").mkdir()
    whole = (work.ciuic.parent.parent / "plugins/libfp32.so").read_bytes()
    (work / "own/libhalf.so").write_bytes(whole[:len(whole) // 2])
    refuse(work, "half", "libhalf.so")


def test_library_without_the_symbol(work):
    file = compile_plugin(work, "bare", "int answer(void) { return 42; }\n")
    refuse(work, "bare", "libbare.so", "ciuic_plugin_query")
    assert "ciuic_plugin_query" in refused_line(work, file)


@pytest.mark.parametrize("major, minor", [("CIUIC_ABI_MAJOR", "99"), ("7", "CIUIC_ABI_MINOR")])
def test_another_abi_names_both_versions(work, major, minor):
    file = compile_plugin(work, "alien", OTHER_ABI % (major, minor, major, minor))
    found = f"{major if major == '7' else 0}.{minor if minor == '99' else ABI_MINOR}"
    refuse(work, "alien", "libalien.so", found, f"0.{ABI_MINOR}")
    assert found in refused_line(work, file)


def test_query_that_shows_nothing(work):
    compile_plugin(work, "void", NOTE % "void" + "const void* ciuic_plugin_query(unsigned a, unsigned b) { return 0; }\n")
    work.config({"plugins.path": ["own"], "precision.plugin": "void"})
    assert_fault(work.run("train", "run.toml"), 3, '"void"')
    assert_no_run(work)


@pytest.mark.parametrize("source", [
    pytest.param(FAILS_IN_SDK, id="in the SDK's constructor"),
    pytest.param(RAW_THROW, id="over the line"),
])
@pytest.mark.parametrize("ranks", [1, 2])
def test_throw_in_create(work, source, ranks):
    compile_plugin(work, "thrower", source, "c++")
    work.config({"plugins.path": ["own"], "precision.plugin": "thrower", "run.ranks": ranks})
    result = work.run("train", "run.toml")
    assert_fault(result, 3, "thrower", "the moon is not full")
    assert not work.checkpoints(), result


def test_crash_while_loading(work):
    compile_plugin(work, "bomb", NOTE % "bomb" + "#include <stdlib.h>\n__attribute__((constructor)) static void boom(void) { abort(); }\n"
                   "const void* ciuic_plugin_query(unsigned a, unsigned b) { return 0; }\n")
    work.config({"plugins.path": ["own"], "precision.plugin": "bomb"})
    assert_fault(work.run("train", "run.toml"), 3, "crashed")
    assert_no_run(work)


def test_the_first_of_a_name_wins_and_a_shadowed_one_is_listed(work):
    (work / "own").mkdir()
    (work / "own/libfp32.so").write_bytes((work.ciuic.parent.parent / "plugins/libfp32.so").read_bytes())
    listing = work.run("plugin", "list", env={"CIUIC_PLUGIN_PATH": "own"})
    lines = [line for line in listing.out.splitlines() if line.split()[:2] == ["precision", "fp32"]]
    assert len(lines) == 2 and "own/libfp32.so" in lines[0], listing
    assert "shadowed" not in lines[0] and "shadowed" in lines[1], listing
