// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace mpi {
namespace {

std::atomic<bool> waiting{false}, terminated{false};
struct sigaction before;

void on_termination(int signal) {
  if (waiting.load()) {
    terminated = true;
    return;
  }
  sigaction(signal, &before, nullptr);
  raise(signal);
}

}  // namespace

Process this_process() {
  Process self{};
  char name[64] = {}, space[64] = {};
  gethostname(name, sizeof name - 1);
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '\0';
  std::snprintf(self.machine, sizeof self.machine, "%s %s", name, space);
  self.pid = static_cast<int32_t>(getpid());
  return self;
}

uint32_t state_of(const Process& process) {
  static const Process self = this_process();
  if (std::strcmp(process.machine, self.machine) != 0) return PG_PEER_ALIVE;
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process.pid);
  FILE* file = std::fopen(path, "r");
  if (file == nullptr) return PG_PEER_LOST;
  const size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* name_end = std::strrchr(text, ')');  // the name in front may hold anything
  if (name_end == nullptr || name_end[1] == '\0') return PG_PEER_LOST;
  switch (name_end[2]) {
    case 'Z':
    case 'X': return PG_PEER_LOST;
    case 'T':
    case 't': return PG_PEER_STOPPED;
    default: return PG_PEER_ALIVE;
  }
}

void watch_termination() {
  struct sigaction action {};
  action.sa_handler = on_termination;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &before);
}

Waiting::Waiting() { waiting = true; }
Waiting::~Waiting() { waiting = false; }
bool was_terminated() { return terminated.load(); }

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); i++) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    if (i == 8 && ranks.size() > 10) return text + pg::format("%zu more", ranks.size() - i);
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace mpi
