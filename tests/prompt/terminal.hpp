// SPDX-License-Identifier: Apache-2.0
// The perigee executable on a pseudo terminal.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

/// A folder that is gone at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path;
};

class Terminal {
 public:
  /// Starts the prompt with `home` as HOME and state folder, and waits for its greeting.
  explicit Terminal(const std::filesystem::path& home, unsigned short columns = 200);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void send(const std::string& keys);
  /// Waits until `text` comes behind what was seen so far; false after `seconds`. `before`: what came up to there.
  bool sees(const std::string& text, double seconds = 20, std::string* before = nullptr);
  /// Exit status once the process has ended; -1 where it does not.
  int ends(double seconds = 20);
  /// What came and was not seen yet, for messages.
  const std::string& rest() const { return unseen; }

 private:
  bool receive(int milliseconds);

  int master = -1;
  pid_t process = -1;
  std::string unseen;
};
