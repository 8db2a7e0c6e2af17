// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "waiting.hpp"

namespace mpi {
namespace {

constexpr double kSpeaks = 1;  // seconds behind the first signal, in which others do not end a process that speaks

std::atomic<bool> waiting{false}, terminated{false};
std::atomic<double> terminated_at{0};
struct sigaction before;
std::vector<int32_t> neighbours;  // processes of this machine

// What `/proc` calls a process's state; 'X' where there is none. Signal handlers call it.
char letter_of(int32_t pid) {
  char path[64] = "/proc/", text[512];
  std::strcpy(std::to_chars(path + 6, path + 24, pid).ptr, "/stat");
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 'X';
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length < 0 ? 0 : length] = '\0';
  const char* name_end = std::strrchr(text, ')');  // the name in front may hold anything
  return name_end == nullptr || name_end[1] == '\0' ? 'X' : name_end[2];
}

bool has_ended(int32_t pid) {
  const char letter = letter_of(pid);
  return letter == 'X' || letter == 'Z';
}

bool has_lost_neighbour() {
  for (const int32_t pid : neighbours)
    if (has_ended(pid)) return true;
  return false;
}

// The launcher ends what is left of a job. A process that waits says first what it has waited for; one that computes
// comes to its next call, if another has ended: the launcher does not wait for it for long. Being asked again later is
// enough; it asks twice at once.
void on_termination(int signal) {
  const int kept = errno;
  const bool first = !terminated.load();
  const bool defers = waiting.load() || (first ? has_lost_neighbour() : now() < terminated_at.load() + kSpeaks);
  if (defers && first) terminated_at = now();
  errno = kept;
  if (defers) {
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
  switch (letter_of(process.pid)) {
    case 'Z':
    case 'X': return PG_PEER_LOST;
    case 'T':
    case 't': return PG_PEER_STOPPED;
    default: return PG_PEER_ALIVE;
  }
}

void watch_termination(const std::vector<Process>& processes) {
  const Process self = this_process();
  for (const Process& each : processes)
    if (each.pid != self.pid && std::strcmp(each.machine, self.machine) == 0) neighbours.push_back(each.pid);
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
