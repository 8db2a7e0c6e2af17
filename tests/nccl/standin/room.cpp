// SPDX-License-Identifier: Apache-2.0
#include "room.hpp"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

namespace standin {

namespace fs = std::filesystem;

Room::Room(const std::string& name) : path_(fs::temp_directory_path() / ("perigee-nccl-" + name)) {
  std::error_code code;
  fs::create_directory(path_, code);
}

void Room::put(const std::string& name, const std::vector<char>& bytes) const {
  static std::atomic<uint64_t> number{0};
  const fs::path draft = path_ / (".draft-" + std::to_string(getpid()) + "-" + std::to_string(++number));
  std::ofstream(draft, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::error_code code;
  fs::rename(draft, path_ / name, code);
}

bool Room::get(const std::string& name, std::vector<char>& bytes) const {
  std::ifstream file(path_ / name, std::ios::binary);
  if (!file) return false;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

bool Room::has(const std::string& name) const {
  std::error_code code;
  return fs::exists(path_ / name, code);
}

void Room::remove(const std::string& name) const {
  std::error_code code;
  fs::remove(path_ / name, code);
}

bool Room::exists() const { return has("."); }

void Room::clear() const {
  std::error_code code;
  fs::remove_all(path_, code);
}

}  // namespace standin
