// SPDX-License-Identifier: Apache-2.0
// Tar archives (POSIX 1003.1: ustar and pax; GNU's long names): their files one after the other.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace formats {

// Bytes by position; `read` is asked for what is inside of `size`.
struct TarBytes {
  uint64_t size;
  std::function<void(uint64_t offset, void* target, uint64_t bytes)> read;
};

struct TarMember {
  std::string name;
  uint64_t begin;  // of what stands before its data, extensions of its header among them
  uint64_t data, size;
  uint64_t end;  // where the next begins
};

struct TarDamage {
  uint64_t at;
  std::string problem;
};

// Calls see for each file of an archive. What is damaged ends it.
std::optional<TarDamage> each_member(const TarBytes& archive, const std::function<void(const TarMember&)>& see);

}  // namespace formats
