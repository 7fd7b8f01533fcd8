// SPDX-License-Identifier: MIT
#include "core/plugin/elf_file.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ciuic/abi/types.h>

#include "core/plugin/library_note.h"
#include "private_folders.h"

namespace ciuic::core {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

const std::string kAdamw = std::string(CIUIC_BUILD_DIR) + "/plugins/libadamw.so";
const std::string kBroken = CIUIC_BROKEN_PLUGINS;

std::string error_of(const Bytes& image) {
  try {
    (void)LibraryNote::read(ElfFile::parse(image));
  } catch (const ElfError& e) {
    return e.what();
  }
  return "";
}

template <typename T>
T read(const Bytes& image, size_t at) {
  T value;
  std::memcpy(&value, image.data() + at, sizeof(T));
  return value;
}
template <typename T>
void write(Bytes& image, size_t at, const T& value) {
  std::memcpy(image.data() + at, &value, sizeof(T));
}

/// Where the program header of a type stands.
size_t segment_at(const Bytes& image, uint32_t type) {
  const auto header = read<Elf64_Ehdr>(image, 0);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (read<Elf64_Phdr>(image, at).p_type == type) {
      return at;
    }
  }
  ADD_FAILURE() << "no segment of type " << type;
  return 0;
}

TEST(ElfFile, SaysWhatAPluginNeedsAndShows) {
  const ElfFile file = ElfFile::parse(bytes_of(kAdamw));
  EXPECT_THAT(file.needed, Contains("libc.so.6"));
  EXPECT_TRUE(file.exports_symbol("ciuic_plugin_query"));
  EXPECT_EQ(file.exports.size(), 1u) << "the version script lets out one symbol";
  EXPECT_FALSE(file.has_executable_stack);
  EXPECT_FALSE(file.has_text_relocations);
  EXPECT_FALSE(file.exports[0].is_unique);
}

TEST(ElfFile, SeesUniqueSymbolsAndRunpaths) {
  const ElfFile unique = ElfFile::parse(bytes_of(kBroken + "/libstays_mapped.so"));
  EXPECT_TRUE(std::any_of(unique.exports.begin(), unique.exports.end(),
                          [](const ElfSymbol& s) { return s.is_unique; }));
  const ElfFile bundle = ElfFile::parse(bytes_of(kBroken + "/libprivate_dependency.so"));
  EXPECT_THAT(bundle.runpath, Contains(HasSubstr("$ORIGIN")));
  EXPECT_THAT(bundle.needed, Contains("libciuic_test_dependency.so"));
}

TEST(ElfFile, NoteNamesThePlugins) {
  const LibraryNote note = LibraryNote::read(ElfFile::parse(bytes_of(kAdamw)));
  ASSERT_EQ(note.plugins.size(), 1u);
  EXPECT_EQ(note.plugins[0].name, "adamw");
  EXPECT_EQ(note.plugins[0].kind, uint32_t{CIUIC_KIND_OPTIMIZER});
  EXPECT_EQ(note.abi.minor, CIUIC_ABI_MINOR);
}

TEST(ElfFile, WithoutANoteSaysHowToMakeOne) {
  EXPECT_THAT(error_of(bytes_of(kBroken + "/libwithout_note.so")),
              AllOf(HasSubstr(".note.ciuic"), HasSubstr("CIUIC_PLUGINS")));
}

TEST(ElfFile, EveryPrefixIsRefused) {
  const Bytes whole = bytes_of(kBroken + "/libsound.so");
  ASSERT_EQ(error_of(whole), "");
  const auto header = read<Elf64_Ehdr>(whole, 0);
  uint64_t end = 0;  // of what is mapped: section headers behind it may be missing
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto s = read<Elf64_Phdr>(whole, header.e_phoff + i * sizeof(Elf64_Phdr));
    end = std::max(end, s.p_offset + s.p_filesz);
  }
  for (size_t size = 0; size < end; ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_NE(error_of(part), "") << size << " bytes";
  }
}

TEST(ElfFile, OffsetsThatWrapAroundAreRefused) {
  for (const uint64_t huge : {~uint64_t{0}, ~uint64_t{0} - 63, uint64_t{1} << 63}) {
    Bytes image = bytes_of(kAdamw);
    auto header = read<Elf64_Ehdr>(image, 0);
    header.e_phoff = huge;
    write(image, 0, header);
    EXPECT_THAT(error_of(image), HasSubstr("damaged")) << huge;

    for (const uint32_t type : {uint32_t{PT_LOAD}, uint32_t{PT_DYNAMIC}, uint32_t{PT_NOTE}}) {
      Bytes other = bytes_of(kAdamw);
      const size_t at = segment_at(other, type);
      auto segment = read<Elf64_Phdr>(other, at);
      segment.p_offset = huge;
      write(other, at, segment);
      EXPECT_THAT(error_of(other), HasSubstr("damaged")) << huge << " type " << type;
    }
  }
}

TEST(ElfFile, NoteThatClaimsTooMuchIsRefused) {
  for (const uint32_t huge : {~0u, 0x7fffffffu, 100000u}) {
    Bytes image = bytes_of(kBroken + "/libsound.so");
    const auto segment = read<Elf64_Phdr>(image, segment_at(image, PT_NOTE));
    auto head = read<Elf64_Nhdr>(image, segment.p_offset);
    head.n_descsz = huge;
    write(image, segment.p_offset, head);
    EXPECT_THAT(error_of(image), HasSubstr("damaged")) << huge;
    head.n_descsz = 20;
    head.n_namesz = huge;
    write(image, segment.p_offset, head);
    EXPECT_THAT(error_of(image), HasSubstr("damaged")) << huge;
  }
}

TEST(ElfFile, ExecutableStackIsSeenAlsoWhereNothingIsSaid) {
  Bytes image = bytes_of(kAdamw);
  const size_t at = segment_at(image, PT_GNU_STACK);
  auto stack = read<Elf64_Phdr>(image, at);
  stack.p_flags |= PF_X;
  write(image, at, stack);
  EXPECT_TRUE(ElfFile::parse(image).has_executable_stack);
  stack.p_type = PT_NULL;
  write(image, at, stack);
  EXPECT_TRUE(ElfFile::parse(image).has_executable_stack);
}

TEST(ElfFile, OtherMachinesAndClassesAreNamed) {
  Bytes image = bytes_of(kAdamw);
  auto header = read<Elf64_Ehdr>(image, 0);
  header.e_machine = EM_S390;
  write(image, 0, header);
  EXPECT_THAT(error_of(image), HasSubstr("another processor"));
  header.e_ident[EI_CLASS] = ELFCLASS32;
  write(image, 0, header);
  EXPECT_THAT(error_of(image), HasSubstr("64-bit"));
}

/// Random damage never does anything but succeed or throw ElfError. (The sanitizers watch.)
TEST(ElfFile, RandomDamageEndsInAnError) {
  std::mt19937 random(20240917);
  const Bytes whole = bytes_of(kBroken + "/libsound.so");
  size_t refused = 0;
  for (int i = 0; i < 4000; ++i) {
    Bytes image = whole;
    const size_t reach = i % 2 == 0 ? 2048 : image.size();  // headers first: they matter most
    for (unsigned k = 1 + random() % 8; k > 0; --k) {
      image[random() % std::min(reach, image.size())] = static_cast<std::byte>(random());
    }
    if (i % 5 == 0) {
      image.resize(random() % image.size());
    }
    refused += error_of(image).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace ciuic::core
