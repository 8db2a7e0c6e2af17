// SPDX-License-Identifier: Apache-2.0
#include "plugin/elf_check.hpp"

#include <elf.h>
#include <link.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "perigee/plugin.hpp"

namespace perigee {

namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "name the ELF machine of this processor here"
#endif

using Header = ElfW(Ehdr);
using Program = ElfW(Phdr);

bool fits(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

std::string truncated(uint64_t size, uint64_t needed) {
  return pg::format("is truncated: its headers name %llu bytes, the file has %llu",
                    static_cast<unsigned long long>(needed), static_cast<unsigned long long>(size));
}

std::string header_defect(const Header& header, uint64_t size) {
  if (header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32)) {
    return "is a library for another word size";
  }
  if (header.e_machine != kMachine) return "is a library for another processor";
  if (header.e_type != ET_DYN) return "is an ELF file, but not a shared library";
  if (header.e_phentsize != sizeof(Program)) return "has a damaged ELF header";
  const uint64_t programs = uint64_t{header.e_phnum} * sizeof(Program);
  if (!fits(header.e_phoff, programs, size)) return truncated(size, header.e_phoff + programs);
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff != 0 && !fits(header.e_shoff, sections, size)) return truncated(size, header.e_shoff + sections);
  return "";
}

}  // namespace

std::string library_defect(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);  // opening a pipe would wait for who writes into it
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return "is no regular file";
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::string("cannot be read: ") + std::strerror(errno != 0 ? errno : EIO);
  const auto end = file.tellg();
  if (end < 0) return "cannot be read";
  const auto size = static_cast<uint64_t>(end);
  Header header{};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto got = static_cast<size_t>(file.gcount());
  if (got < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "is not a shared library (no ELF header)";
  if (got < sizeof header) return truncated(size, sizeof header);
  if (std::string defect = header_defect(header, size); !defect.empty()) return defect;

  std::vector<Program> programs(header.e_phnum);
  file.clear();
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  file.read(reinterpret_cast<char*>(programs.data()), static_cast<std::streamsize>(programs.size() * sizeof(Program)));
  if (!file) return "cannot be read";
  for (const Program& program : programs) {
    if (program.p_type == PT_LOAD && !fits(program.p_offset, program.p_filesz, size)) {
      return truncated(size, program.p_offset + program.p_filesz);
    }
  }
  return "";
}

}  // namespace perigee
