// SPDX-License-Identifier: Apache-2.0
// A folder in which the ranks of a communicator, threads of one process or of several, lay down what others read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace standin {

class Room {
 public:
  explicit Room(const std::string& name);
  void put(const std::string& name, const std::vector<char>& bytes) const;  // whole, or not there
  bool get(const std::string& name, std::vector<char>& bytes) const;        // false: not there yet
  bool has(const std::string& name) const;
  void remove(const std::string& name) const;
  bool exists() const;
  void clear() const;

 private:
  std::filesystem::path path_;
};

}  // namespace standin
