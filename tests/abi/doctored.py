# SPDX-License-Identifier: MIT
"""Copies of the SDK headers with another version and other members: what a release of 1.x will do, and what it must never do."""

import pathlib
import shutil


def replace(text, old, new):
    assert old in text, f"the headers no longer hold: {old}"
    return text.replace(old, new, 1)


def copy(source, target, edits=(), version=None):
    """The headers of `source` in `target`, with edits (file, old, new) made and the version set."""
    shutil.copytree(source, target)
    abi = pathlib.Path(target) / "ciuic/abi"
    edits = list(edits)
    if version is not None:
        types = (abi / "types.h").read_text().splitlines()
        for i, line in enumerate(types):
            if line.startswith("#define CIUIC_ABI_MAJOR"):
                types[i] = f"#define CIUIC_ABI_MAJOR {version[0]}u"
            if line.startswith("#define CIUIC_ABI_MINOR"):
                types[i] = f"#define CIUIC_ABI_MINOR {version[1]}u"
        (abi / "types.h").write_text("\n".join(types) + "\n")
    for file, old, new in edits:
        (abi / file).write_text(replace((abi / file).read_text(), old, new))
    return target


# What 1.1 may do to 1.0: append members, slots, constants and services.
APPENDED = [
    ("host.h", "  const void* (*service)(void* ctx, const char* name, uint32_t min_version);\n",
     "  const void* (*service)(void* ctx, const char* name, uint32_t min_version);\n  uint64_t (*now)(void* ctx);\n"),
    ("profiler.h", "  ciuic_array fields; /* ciuic_field, rare */\n", "  ciuic_array fields; /* ciuic_field, rare */\n  uint64_t extra;\n"),
    ("profiler.h", "  ciuic_status* (*flush)(ciuic_instance*, int64_t timeout_ns); /* [I] */\n",
     "  ciuic_status* (*flush)(ciuic_instance*, int64_t timeout_ns); /* [I] */\n"
     "  ciuic_status* (*annotate)(ciuic_instance*, ciuic_str);       /* [I] optional */\n"),
    ("profiler.h", "  CIUIC_EVENT_STEP = 5 ", "  CIUIC_EVENT_MARK = 6,\n  CIUIC_EVENT_STEP = 5 "),
    ("plugin.h", "  const char* const* choices; /* NULL-terminated; for ENUM */\n",
     "  const char* const* choices; /* NULL-terminated; for ENUM */\n  const char* group;\n"),
    ("plugin.h", "empty: there is none */\n", "empty: there is none */\n  uint64_t run;\n"),
    ("services.h", "/* \"ciuic.metrics\" */\n",
     "/* \"ciuic.example\" */\ntypedef struct ciuic_example_service {\n  uint32_t struct_size, flags;\n  void* ctx;\n"
     "  uint64_t (*answer)(void* ctx);\n} ciuic_example_service;\n\n/* \"ciuic.metrics\" */\n"),
]

LEGAL = {
    "a slot appended": APPENDED[2],
    "a member appended": APPENDED[1],
    "a new constant": APPENDED[3],
    "a new service": APPENDED[6],
}
ILLEGAL = {
    "slots in another order": (
        "profiler.h", "  uint32_t struct_size, type, category, thread;\n", "  uint32_t struct_size, category, type, thread;\n"),
    "a slot with another type": ("work.h", "ciuic_status* (*test)(ciuic_work*, int32_t* done);", "ciuic_status* (*test)(ciuic_work*, int64_t* done);"),
    "a member put in the middle": ("plugin.h", "  uint64_t generation; /* counts restarts */\n", "  uint64_t run, generation;\n"),
    "a constant with another number": ("profiler.h", "CIUIC_EVENT_COUNTER = 4,", "CIUIC_EVENT_COUNTER = 7,"),
    "a frozen struct that grew": ("types.h", "typedef struct ciuic_device {\n  int32_t type, id;\n", "typedef struct ciuic_device {\n  int32_t type, id;\n  int64_t more;\n"),
    "a signature that lost an argument": ("precision.h", "  double (*loss_scale)(ciuic_instance*);", "  double (*loss_scale)(void);"),
}
