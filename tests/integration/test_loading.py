# SPDX-License-Identifier: MIT
"""From a file to a plugin: trust, lock, staging, the child that looks first, quarantine; and the commands around them."""
import json
import os
import random
import re
import signal
import subprocess
import tomllib

import pytest

from conftest import CIUIC, SOURCE, assert_fault, assert_no_run, free_port, wait_until

PLUGINS = CIUIC.parent.parent / "plugins"
SOUND = SOURCE / "tests/plugin/broken/sound_profiler.h"
MUTATIONS = int(os.environ.get("CIUIC_MUTATIONS", "200"))
STEPS = ("resolve", "trust", "hash", "quarantine", "note", "stage", "load", "query", "descriptor", "unload")
REFUSED = re.compile(rf"ciuic: error: a plugin is refused: ({'|'.join(STEPS)}): \S.*file=\S+")
QUERY = """
const ciuic_descriptor* ciuic_plugin_query(uint32_t major, uint32_t index) { return sound_query(major, index); }
"""


@pytest.fixture(autouse=True)
def own_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))


def compile_profiler(work, name, extra="", options=(), folder="own"):
    """A profiler in plain C, sound but for `extra`."""
    (work / folder).mkdir(exist_ok=True)
    file = work / folder / f"lib{name}.so"
    source = f"""
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#define PLUGIN_NAME "{name}"
#include "{SOUND}"
CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");
{extra}
{QUERY}"""
    subprocess.run(["cc", "-std=gnu11", "-xc", "-", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{SOURCE}/sdk/include",
                    "-o", file, *options], input=source, text=True, check=True)
    return file


def own_copies(work, folder="own"):
    (work / folder).mkdir()
    for library in PLUGINS.glob("*.so"):
        (work / folder / library.name).write_bytes(library.read_bytes())


def sha256(file):
    return subprocess.run(["sha256sum", file], capture_output=True, text=True, check=True).stdout.split()[0]


# damage

def damaged(random_, whole):
    """One mutation of a library's bytes."""
    data = bytearray(whole)
    kind = random_.randrange(5)
    if kind == 0:
        return bytes(data[:random_.randrange(len(data))])
    if kind == 1:  # anywhere
        for _ in range(random_.randint(1, 64)):
            data[random_.randrange(len(data))] = random_.randrange(256)
    elif kind == 2:  # headers and notes
        for _ in range(random_.randint(1, 8)):
            data[random_.randrange(min(4096, len(data)))] = random_.randrange(256)
    elif kind == 3:  # a hole
        at = random_.randrange(len(data))
        data[at:at + random_.randint(1, 4096)] = bytes(min(random_.randint(1, 4096), len(data) - at))
    else:  # a piece from elsewhere
        size = random_.randint(1, 512)
        source, target = random_.randrange(len(data)), random_.randrange(len(data))
        data[target:target + size] = data[source:source + size]
    return bytes(data)


def test_damaged_libraries_are_refused_and_the_host_never_dies(work):
    random_ = random.Random(20240917)
    compile_profiler(work, "sound")
    originals = [(work / "own/libsound.so").read_bytes(), (PLUGINS / "libfp32.so").read_bytes(),
                 (PLUGINS / "libmonitor.so").read_bytes()]
    refused = {}
    for i in range(MUTATIONS):
        file = work / "own/libvictim.so"
        file.unlink(missing_ok=True)
        file.write_bytes(damaged(random_, originals[i % len(originals)]))
        result = work.run("plugin", "inspect", "own/libvictim.so", "--probe-timeout", "5s")
        assert result.code in (0, 3), f"mutation {i}\n{result}"
        if result.code == 3:
            found = REFUSED.search(result.last_line)
            assert found and "own/libvictim.so" in result.last_line, f"mutation {i}\n{result}"
            refused[found[1]] = refused.get(found[1], 0) + 1
    assert sum(refused.values()) > MUTATIONS / 4, refused
    assert "note" in refused and len(refused) > 1, refused


def test_damaged_neighbours_do_not_hide_the_sound_one(work):
    random_ = random.Random(7)
    compile_profiler(work, "sound")
    whole = (work / "own/libsound.so").read_bytes()
    for i in range(20):
        (work / f"own/libvictim{i:02}.so").write_bytes(damaged(random_, whole))
    listing = work.run("plugin", "list", "--path", "own")
    assert listing.code == 0, listing
    # A victim that is hardly damaged may show the same plugin; this one is whole.
    assert any(line.split()[:2] == ["profiler", "sound"] and "libsound.so" in line for line in listing.out.splitlines())


@pytest.mark.parametrize("body, said", [
    ("abort();", "signal 6"),
    ("*(volatile int*)0 = 1;", "signal 11"),
    ("_exit(0);", "exit code 0"),
    ("while (1) pause();", "did not return within"),
    ("while (1) { }", "did not return within"),
], ids=["abort", "segfault", "exit", "sleep", "spin"])
def test_constructor_that_misbehaves(work, body, said):
    compile_profiler(work, "sound")
    file = compile_profiler(work, "bad", f"__attribute__((constructor)) static void begin(void) {{ {body} }}")
    # Patience enough for the sound ones, also on a machine that has other work.
    patience = 1 + int(os.getloadavg()[0] / os.cpu_count())
    work.config({"plugins.path": ["own"], "profiler.plugins": ["bad"], "plugins.probe_timeout": f"{patience}s",
                 "communicator.plugin": "local"})
    result = work.run("train", "run.toml")
    assert_fault(result, 3, '"bad"', "load", said, "own/libbad.so", remedy="quarantine remove", seconds=10)
    assert_no_run(work)
    # From now on it is not even tried, and says so; its neighbour is not affected.
    again = work.run("train", "run.toml")
    assert_fault(again, 3, '"bad"', "quarantine", said, remedy=sha256(file)[:12])
    listing = work.run("plugin", "list", "--path", "own")
    assert "own/libsound.so" in listing.out
    # Lifted, it is tried again.
    assert work.run("plugin", "quarantine", "remove", sha256(file)[:12]).code == 0
    assert_fault(work.run("train", "run.toml"), 3, "load", said, seconds=10)


# It leaves its group and its session, so that only being a child's child gives it away.
RUNS_AWAY = """
#include <signal.h>
#include <sys/prctl.h>
static void run_away(void) {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int fd = 0; fd < 64; ++fd) { close(fd); }
      fclose(fopen("away", "w"));
      while (1) { pause(); }
    }
    _exit(0);
  }
  while (access("away", F_OK) != 0) { usleep(1000); }
}
"""


@pytest.mark.parametrize("end", ["return;", "abort();", "while (1) pause();"], ids=["sound", "crash", "hang"])
def test_what_a_probed_plugin_started_does_not_outlive_it(work, end):
    compile_profiler(work, "runaway", RUNS_AWAY + f"__attribute__((constructor)) static void begin(void) {{ run_away(); {end} }}")
    result = work.run("plugin", "inspect", "own/librunaway.so", "--probe-timeout", "3s")  # nothing may be left
    assert (work / "away").exists() and result.code == (0 if "return" in end else 3), result


def test_an_interrupted_look_leaves_nothing_behind(work):
    file = compile_profiler(work, "runaway",
                            RUNS_AWAY + "__attribute__((constructor)) static void begin(void) { run_away(); while (1) pause(); }")
    for number in (signal.SIGINT, signal.SIGTERM):
        (work / "away").unlink(missing_ok=True)
        process = work.start("plugin", "inspect", "own/librunaway.so")
        wait_until((work / "away").exists, 20, "hanging in the probe")
        process.signal(number)
        assert process.wait().code == -number
        work.wait_for_silence(5)
        assert "nothing is in quarantine" in work.run("plugin", "quarantine").out, "a person stopped it, not the plugin"
    (work / "away").unlink()
    process = work.start("plugin", "inspect", "own/librunaway.so")
    wait_until((work / "away").exists, 20, "hanging in the probe")
    process.signal(signal.SIGKILL)
    process.wait()
    work.wait_for_silence(5)
    assert_fault(work.run("plugin", "inspect", file), 3, "quarantine", "ciuic itself was killed while it was looked at")


def test_a_plugin_that_kills_who_looks_at_it_is_known(work):
    """Its parent is the probe; the one above it is ciuic."""
    kills = "__attribute__((constructor)) static void begin(void) {{ kill({}, SIGKILL); while (1) pause(); }}"
    compile_profiler(work, "patricide", "#include <signal.h>\n" + kills.format("getppid()"))
    assert_fault(work.run("plugin", "inspect", "own/libpatricide.so"), 3, "load", "signal 9", remedy="quarantine remove")
    grandparent = """
#include <signal.h>
static int grandparent(void) {
  char path[64];
  int ppid = 0;
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)getppid());
  FILE* f = fopen(path, "r");
  if (fscanf(f, "%*d %*s %*c %d", &ppid) != 1) { _exit(1); }
  return ppid;
}
"""
    file = compile_profiler(work, "regicide", grandparent + kills.format("grandparent()"))
    assert work.start("plugin", "inspect", "own/libregicide.so").wait().code == -signal.SIGKILL
    work.wait_for_silence(5)
    assert_fault(work.run("plugin", "inspect", "own/libregicide.so"), 3, "quarantine", "ciuic itself was killed",
                 remedy=sha256(file)[:12])


@pytest.mark.parametrize("where", ["load", "query"])
def test_a_plugin_that_replaces_the_hosts_files_is_refused(work, where):
    replace = '#include <fcntl.h>\nstatic void replace(void) { dup2(open("/dev/zero", O_RDWR), 1); }\n'
    if where == "load":
        compile_profiler(work, "swapper", replace + "__attribute__((constructor)) static void begin(void) { replace(); }")
    else:
        compile_profiler(work, "swapper", replace + "#define sound_query(a, b) (replace(), sound_query(a, b))")
    assert_fault(work.run("plugin", "inspect", "own/libswapper.so"), 3, "query", "descriptor 1 points elsewhere")


def test_the_lock_covers_what_a_plugin_brings_along(work):
    (work / "own/lib").mkdir(parents=True)

    def build(number):
        subprocess.run(["cc", "-xc", "-", "-shared", "-fPIC", "-o", work / "own/lib/libbrought.so"], text=True, check=True,
                       input=f"int brought(void);\nint brought(void) {{ return {number}; }}\n")
    build(1)
    compile_profiler(work, "bringer", "int brought(void);\nint use(void);\nint use(void) { return brought(); }",
                     ["-L" + str(work / "own/lib"), "-lbrought", "-Wl,-rpath,$ORIGIN/lib"])
    assert work.run("plugin", "lock", "--path", "own", "-o", "ciuic.lock").code == 0
    lock = tomllib.loads((work / "ciuic.lock").read_text())
    entry = next(p for p in lock["plugin"] if p["name"] == "bringer")
    assert lock["format"] == 2 and entry["bundle"] in work.run("plugin", "inspect", "own/libbringer.so").out
    work.config({"plugins.path": ["own"], "profiler.plugins": ["bringer"], "plugins.lock": "ciuic.lock"})
    assert work.run("config", "check", "run.toml").code == 0
    build(2)
    assert_fault(work.run("config", "check", "run.toml"), 3, "hash", entry["bundle"], "libbrought.so", remedy="ciuic plugin lock")
    build(1)
    assert work.run("config", "check", "run.toml").code == 0
    text = (work / "ciuic.lock").read_text()
    (work / "ciuic.lock").write_text(re.sub(r"^(format|bundle) = .*\n", "", text, flags=re.M))
    assert_fault(work.run("config", "check", "run.toml"), 3, "hash", "brings none", "libbrought.so", remedy="ciuic plugin lock")


def test_nothing_but_the_probe_runs_a_plugins_code_before_the_ranks(work):
    extra = """
__attribute__((constructor)) static void begin(void) {
  char name[4096];
  const ssize_t n = readlink("/proc/self/exe", name, sizeof(name) - 1);
  FILE* f = fopen("seen", "a");
  fprintf(f, "%.*s\\n", (int)n, name);
  fclose(f);
}"""
    compile_profiler(work, "witness", extra)
    work.config({"plugins.path": ["own"], "profiler.plugins": ["witness"], "run.steps": 1})
    assert work.run("plugin", "inspect", "own/libwitness.so", "--static").code == 0
    assert work.run("config", "reference").code == 0
    assert not (work / "seen").exists()
    for arguments in (["plugin", "list", "--path", "own"], ["plugin", "inspect", "own/libwitness.so"],
                      ["plugin", "schema", "own/libwitness.so"], ["config", "check", "run.toml"],
                      ["config", "show", "run.toml"], ["plugin", "lock", "run.toml"]):
        assert work.run(*arguments).code == 0, arguments
    assert {line.rsplit("/", 1)[1] for line in (work / "seen").read_text().splitlines()} == {"ciuic-probe"}
    work.train()
    assert {line.rsplit("/", 1)[1] for line in (work / "seen").read_text().splitlines()} == {
        "ciuic-probe", "ciuic-worker"}


# trust

def test_file_that_anybody_may_write_is_refused_with_the_command_that_helps(work):
    file = compile_profiler(work, "sound")
    file.chmod(0o666)
    work.config({"plugins.path": ["own"], "profiler.plugins": ["sound"]})
    result = work.run("config", "check", "run.toml")
    assert_fault(result, 3, "trust", "may be written by everybody", remedy="chmod go-w")
    command = re.search(r"chmod go-w '[^']*'", result.last_line)[0]
    subprocess.run(command, shell=True, cwd=work.path, check=True)
    assert work.run("config", "check", "run.toml").code == 0


def test_trust_any_is_for_file_systems_without_modes(work):
    compile_profiler(work, "sound").chmod(0o666)
    work.config({"plugins.path": ["own"], "profiler.plugins": ["sound"], "plugins.trust": "any"})
    assert work.run("config", "check", "run.toml").code == 0


def test_symbolic_link_and_pipe_are_refused(work):
    file = compile_profiler(work, "sound")
    (work / "own/liblinked.so").symlink_to(file)
    os.mkfifo(work / "own/libpipe.so")
    assert_fault(work.run("plugin", "inspect", "own/liblinked.so"), 3, "trust", "symbolic link")
    assert_fault(work.run("plugin", "inspect", "own/libpipe.so"), 3, "trust", "no regular file")


def test_environment_may_be_closed(work):
    compile_profiler(work, "sound")
    work.config({"profiler.plugins": ["sound"]})
    env = {"CIUIC_PLUGIN_PATH": "own"}
    assert work.run("config", "check", "run.toml", env=env).code == 0
    work.config({"profiler.plugins": ["sound"], "plugins.allow_env": False})
    assert_fault(work.run("config", "check", "run.toml", env=env), 3, '"sound"')


# lock

def test_lock_is_written_holds_and_refuses(work):
    own_copies(work)
    work.config({"plugins.path": ["own"], "run.steps": 2})
    result = work.run("plugin", "lock", "run.toml", "-o", "ciuic.lock")
    assert result.code == 0 and "ciuic.lock: 7 plugins" in result.out, result
    lock = tomllib.loads((work / "ciuic.lock").read_text())
    entry = next(p for p in lock["plugin"] if p["name"] == "adamw")
    adamw = work / "own/libadamw.so"
    assert entry["kind"] == "optimizer" and entry["sha256"] == sha256(adamw)
    work.config({"plugins.path": ["own"], "run.steps": 2, "plugins.lock": "ciuic.lock"})
    work.train()
    before = sha256(adamw)
    adamw.write_bytes(adamw.read_bytes() + b"\0")
    result = work.run("train", "run.toml", "--resume", "none")
    assert_fault(result, 3, "hash", before, sha256(adamw), "own/libadamw.so", remedy="ciuic plugin lock")
    work.config({"plugins.path": ["own"], "precision.plugin": "bf16", "plugins.lock": "ciuic.lock"})
    adamw.write_bytes(adamw.read_bytes()[:-1])
    assert_fault(work.run("config", "check", "run.toml"), 3, "bf16", "does not name")


def test_lock_that_is_none_is_a_mistake_in_the_configuration(work):
    (work / "ciuic.lock").write_text("[[plugin]]\nname = \"adamw\"\nsha265 = \"abc\"\n")
    work.config({"plugins.lock": "ciuic.lock"})
    assert_fault(work.run("config", "check", "run.toml"), 2, "ciuic.lock", "sha256")
    work.config({"plugins.lock": "nowhere.lock"})
    assert_fault(work.run("config", "check", "run.toml"), 2, "nowhere.lock", remedy="ciuic plugin lock")


# the original may go

def replace_in_place(file):
    with open(file, "r+b") as f:
        f.write(b"\xff" * 4096)
        f.truncate(5000)


def replace_by_rename(file):
    other = file.with_suffix(".new")
    other.write_bytes(b"no library at all")
    other.rename(file)


@pytest.mark.parametrize("change", [replace_in_place, replace_by_rename, os.remove], ids=lambda f: f.__name__)
def test_run_does_not_mind_what_happens_to_the_files(work, change):
    own_copies(work)
    changes = {"plugins.path": ["own"], "run.steps": 60, "run.ranks": 2, "profiler.plugins": ["monitor"],
               "checkpoint.every": "20 steps"}
    work.config(changes)
    process = work.start("train", "run.toml")
    work.wait_for_step(3, process)
    for file in sorted((work / "own").glob("*.so")):
        change(file)
    result = process.wait()
    assert result.code == 0, result
    disturbed = work.metrics().losses
    (work / "own").rename(work / "gone")
    own_copies(work)
    work.train("--resume", "none")
    assert work.metrics().losses == disturbed


def test_ranks_with_other_builds_do_not_start(work):
    own_copies(work, "zero")
    own_copies(work, "one")
    adamw = work / "one/libadamw.so"
    adamw.write_bytes(adamw.read_bytes() + b"\0")
    work.config({"run.steps": 2, "communicator.timeout": "10s"})
    port = free_port()
    ranks = [work.start("train", "run.toml", env={
        "RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port, "CIUIC_PLUGIN_PATH": folder}) for rank, folder in enumerate(("zero", "one"))]
    results = [r.wait() for r in ranks]
    assert_fault(results[1], 5, "optimizer adamw", sha256(adamw), sha256(work / "zero/libadamw.so"), "rank=1",
                 seconds=30)
    assert results[0].code in (4, 5), results[0]
    assert not work.checkpoints()


def test_cold_starts_at_once_do_not_disturb_each_other(work):
    processes = [work.start("plugin", "list") for _ in range(6)]
    results = [p.wait() for p in processes]
    assert all(r.code == 0 and not r.err for r in results), results
    assert len({r.out for r in results}) == 1 and "refused" not in results[0].out


def test_without_a_home_there_is_another_place(work):
    env = {"HOME": work / "nowhere", "XDG_CACHE_HOME": "", "XDG_STATE_HOME": "", "TMPDIR": work.path}
    result = work.run("plugin", "inspect", "adamw", env=env)
    assert result.code == 0 and f"{work.path}/ciuic-" in result.out, result
    assert not (work / "nowhere").exists()


# commands

def test_inspect_says_how_every_step_went(work):
    result = work.run("plugin", "inspect", "adamw")
    for step in ("resolve", "trust", "hash", "quarantine", "note", "stage", "load", "query", "descriptor"):
        assert re.search(rf"^  {step} +ok$", result.out, re.M), result
    assert sha256(PLUGINS / "libadamw.so") in result.out and "unloads" in result.out
    static = work.run("plugin", "inspect", "adamw", "--static")
    assert static.code == 0 and "optimizer adamw" in static.out and "beta1" not in static.out


def test_inspect_shows_what_is_known_of_a_refused_one(work):
    compile_profiler(work, "lost", "extern int nowhere(void);\nint use(void);\nint use(void) { return nowhere(); }")
    result = work.run("plugin", "inspect", "own/liblost.so")
    assert_fault(result, 3, "load", "nowhere")
    assert "profiler lost 1.0.0" in result.out and "FAILED" in result.out and "needs" in result.out


def test_schema_in_three_formats(work):
    schema = json.loads(work.run("plugin", "schema", "adamw", "--format", "json-schema").out)
    assert schema["properties"]["beta2"]["default"] == 0.95 and schema["additionalProperties"] is False
    table = tomllib.loads(work.run("plugin", "schema", "adamw", "--format", "toml").out)
    assert table["optimizer"]["adamw"]["beta2"] == 0.95
    work.config({f"optimizer.adamw.{key}": value for key, value in table["optimizer"]["adamw"].items()})
    assert work.run("config", "check", "run.toml").code == 0
    assert "| `beta2` | float | `0.95` |" in work.run("plugin", "schema", "adamw").out
    assert_fault(work.run("plugin", "schema", "adamw", "--format", "pdf"), 2, "pdf")


ODD_OPTIONS = """
static const char* const kWays[] = {"a|b", "c", NULL};
static const ciuic_option_spec kOdd[] = {
  {.struct_size = sizeof(ciuic_option_spec), .type = CIUIC_TYPE_F64, .key = "limit", .doc = "one [two] \\"three\\" \\\\ | four", .unit = "",
   .def = {.f = 1.0 / 0.0}, .min = {.f = 0}, .max = {.f = 1.0 / 0.0}, .deprecated = "use another"},
  {.struct_size = sizeof(ciuic_option_spec), .type = CIUIC_TYPE_F64, .key = "none", .doc = "d", .unit = "",
   .def = {.f = 0.0 / 0.0}, .min = {.f = -1.0 / 0.0}, .max = {.f = 1.0 / 0.0}, .deprecated = ""},
  {.struct_size = sizeof(ciuic_option_spec), .type = CIUIC_TYPE_ENUM, .key = "way", .doc = "d", .unit = "", .def = {.s = {"c", 1}},
   .choices = kWays, .deprecated = ""},
  {.struct_size = sizeof(ciuic_option_spec), .type = CIUIC_TYPE_DURATION, .key = "pause", .doc = "d", .unit = "duration",
   .def = {.i = 1000000}, .min = {.i = 1000000}, .max = {.i = 86400000000000}, .deprecated = ""},
};
"""


def compile_odd(work, summary="first = ["):
    """Texts that a format would have to escape, and bounds at infinity."""
    (work / "own").mkdir()
    head = (SOUND.read_text().replace('"a test"', f'"{summary}", .options = {{kOdd, 4, sizeof(kOdd[0])}}')
            .replace("static const ciuic_descriptor sound", ODD_OPTIONS + "static const ciuic_descriptor sound"))
    (work / "odd.h").write_text(head)
    source = f"""#define PLUGIN_NAME "odd"
#include "odd.h"
CIUIC_NOTE_1(CIUIC_KIND_PROFILER, 0, 0, 0, PLUGIN_NAME, "1.0.0", "");{QUERY}"""
    subprocess.run(["cc", "-std=gnu11", "-xc", "-", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{SOURCE}/sdk/include", f"-I{work.path}",
                    "-o", work / "own/libodd.so"], input=source, text=True, check=True)


def test_schema_of_odd_texts_and_numbers_is_valid_in_every_format(work):
    compile_odd(work)

    def schema(form):
        result = work.run("plugin", "schema", "own/libodd.so", "--format", form)
        assert result.code == 0, result
        return result.out

    def refuse(constant):
        pytest.fail(f"no JSON: {constant}")

    properties = json.loads(schema("json-schema"), parse_constant=refuse)["properties"]
    assert properties["limit"] == {"type": "number", "minimum": 0.0, "description": 'one [two] "three" \\ | four', "deprecated": True}
    assert "default" not in properties["none"] and "minimum" not in properties["none"]
    table = tomllib.loads(schema("toml"))["profiler"]["odd"]
    assert table["limit"] == float("inf") and table["way"] == "c" and table["pause"] == "1ms"
    rows = [line for line in schema("md").splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 4


def test_inspect_gives_a_duration_one_unit(work):
    compile_odd(work)
    assert '"1ms" to "1d". d' in work.run("plugin", "inspect", "own/libodd.so").out, "its bounds say their unit themselves"


def test_texts_with_control_characters_are_refused_and_never_obeyed(work):
    compile_odd(work, summary=r"first\n\033[2Jsecond")
    for command in (["plugin", "inspect", "own/libodd.so"], ["plugin", "schema", "own/libodd.so"], ["plugin", "list", "--path", "own"]):
        result = work.run(*command)
        assert "control character" in result.out + result.err and "\x1b" not in result.out + result.err, result
        assert "\nsecond" not in result.out + result.err, result


@pytest.mark.parametrize("command", [["plugin", "list"], ["plugin", "inspect", "adamw"], ["plugin", "schema", "adamw"], ["checkpoint", "list", "x"],
                                     ["generate", "--model", "x", "--prompt", "y"], ["evaluate", "--model", "x", "--tokens", "y"]])
def test_path_that_is_not_there_is_an_error(work, command):
    assert_fault(work.run(*command, "--path", "nonexistent"), 2, "--path: got nonexistent, expected a folder: No such file")


def test_diff(work):
    (work / "own").mkdir()
    old = work / "own/libold.so"
    old.write_bytes((PLUGINS / "libadamw.so").read_bytes())
    same = work.run("plugin", "diff", old, PLUGINS / "libadamw.so")
    assert same.code == 0 and "can replace" in same.out, same
    other = work.run("plugin", "diff", old, PLUGINS / "libfp32.so")
    assert other.code == 1 and "no optimizer adamw" in other.out, other
    assert_fault(work.run("plugin", "diff", old, "own/none.so"), 3, "none.so")
    assert_fault(work.run("plugin", "diff", old), 2, "two files")


def test_quarantine_by_hand(work):
    file = compile_profiler(work, "sound")
    assert "nothing is in quarantine" in work.run("plugin", "quarantine").out
    assert work.run("plugin", "quarantine", "add", "own/libsound.so", "--reason", "loses events").code == 0
    listing = work.run("plugin", "quarantine", "list").out
    assert sha256(file) in listing and "loses events" in listing and "until" in listing
    assert_fault(work.run("plugin", "inspect", "own/libsound.so"), 3, "quarantine", "loses events")
    assert work.run("plugin", "quarantine", "remove", "own/libsound.so").code == 0
    assert work.run("plugin", "inspect", "own/libsound.so").code == 0
    assert_fault(work.run("plugin", "quarantine", "remove", "abcdef"), 3, "not in quarantine")
    assert_fault(work.run("plugin", "quarantine", "add", "own/libsound.so"), 2, "--reason")
    assert_fault(work.run("plugin", "quarantine", "add", "nowhere.so", "--reason", "x"), 3, "No such file", remedy="a plugin's file")


def test_quarantine_clears_what_is_asked_for(work):
    for name in ("one", "two", "three"):
        compile_profiler(work, name)
        assert work.run("plugin", "quarantine", "add", f"own/lib{name}.so", "--reason", name).code == 0
    assert_fault(work.run("plugin", "quarantine", "clear", "abcdef123"), 3, "not in quarantine")
    assert work.run("plugin", "quarantine", "clear", "own/libtwo.so").code == 0
    assert work.run("plugin", "quarantine", "clear", sha256(work / "own/libthree.so")[:10].upper()).code == 0
    listing = work.run("plugin", "quarantine", "list").out
    assert "libone" in listing and "libtwo" not in listing and "libthree" not in listing
    assert_fault(work.run("plugin", "quarantine", "list", "libone"), 2, "list shows all")
    assert "1 plugin is free" in work.run("plugin", "quarantine", "clear").out
    assert "nothing is in quarantine" in work.run("plugin", "quarantine").out
