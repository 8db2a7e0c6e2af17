// SPDX-License-Identifier: Apache-2.0
#include "terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <thread>

using Clock = std::chrono::steady_clock;

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "perigee_prompt_XXXXXX").string();
  REQUIRE(mkdtemp(name.data()));
  path = name;
}

Folder::~Folder() {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

Terminal::Terminal(const std::filesystem::path& home, unsigned short columns) {
  winsize size = {40, columns, 0, 0};
  process = forkpty(&master, nullptr, nullptr, &size);
  REQUIRE(process >= 0);
  if (process == 0) {
    setenv("HOME", home.c_str(), 1);
    setenv("XDG_STATE_HOME", (home / "state").c_str(), 1);
    setenv("TERM", "xterm", 1);
    const char* given = std::getenv("PERIGEE_EXECUTABLE");  // another build's
    const char* executable = given ? given : PERIGEE_EXECUTABLE;
    execl(executable, executable, static_cast<char*>(nullptr));
    _exit(127);
  }
  REQUIRE(sees("say more."));
}

Terminal::~Terminal() {
  if (process > 0) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  close(master);
}

void Terminal::send(const std::string& keys) {
  size_t sent = 0;
  while (sent < keys.size()) {
    const ssize_t count = write(master, keys.data() + sent, keys.size() - sent);
    REQUIRE(count > 0);
    sent += static_cast<size_t>(count);
  }
}

bool Terminal::receive(int milliseconds) {
  pollfd output = {master, POLLIN, 0};
  if (poll(&output, 1, milliseconds) <= 0) return false;
  char part[4096];
  const ssize_t count = read(master, part, sizeof part);
  if (count <= 0) return false;
  unseen.append(part, static_cast<size_t>(count));
  return true;
}

bool Terminal::sees(const std::string& text, double seconds, std::string* before) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    const size_t at = unseen.find(text);
    if (at != std::string::npos) {
      if (before != nullptr) *before = unseen.substr(0, at);
      unseen.erase(0, at + text.size());
      return true;
    }
    if (Clock::now() >= end) return false;
    receive(50);
  }
}

int Terminal::ends(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    receive(20);
    int status = 0;
    if (waitpid(process, &status, WNOHANG) == process) {
      process = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}
