// SPDX-License-Identifier: Apache-2.0
// What a rank does about others that are gone or late, and what it tells them of itself.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "engine.hpp"
#include "waiting.hpp"

namespace mpi {
namespace {

// Bytes of what a rank that fails tells the others.
constexpr size_t kLastWords = 400;

// "all_reduce of 3 float32", the same on all ranks.
std::string text_of(const Request& r) {
  const pg_collective& c = r.calls[0];
  if (c.count == 0) return r.what;
  return r.what + pg::format(" of %llu %s", static_cast<unsigned long long>(c.count), pg::dtype_name(c.dtype));
}

}  // namespace

// Fails if one of the others has ended, as far as can be seen.
void Engine::check_peers(const std::vector<int>& ranks, const std::string& what) {
  int here = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kLeft, control_, &here, &status);
  if (here) {
    char reason[kLastWords] = {};
    MPI_Recv(reason, sizeof reason - 1, MPI_CHAR, status.MPI_SOURCE, kLeft, control_, MPI_STATUS_IGNORE);
    break_all(PG_E_FAILED_PRECONDITION, what,
              pg::format("cannot be completed: rank %d has failed: %s", status.MPI_SOURCE, reason));
  }
  std::vector<int> lost;
  for (double until = now() + kGrace;;) {
    for (int rank : ranks)
      if (rank != rank_ && state_of(processes_[static_cast<size_t>(rank)]) == PG_PEER_LOST) lost.push_back(rank);
    if (!lost.empty()) break;
    if (!was_terminated()) return;
    if (now() > until) break_all(PG_E_FAILED_PRECONDITION, what, "cannot be completed: the launcher has ended the job");
    usleep(10000);
  }
  // Its last words may have arrived in the meantime.
  MPI_Iprobe(MPI_ANY_SOURCE, kLeft, control_, &here, &status);
  if (here) return check_peers(ranks, what);
  break_all(
      PG_E_FAILED_PRECONDITION, what,
      pg::format("cannot be completed: %s %s ended", name_ranks(lost).c_str(), lost.size() == 1 ? "has" : "have"));
}

// What a call that has waited for a while does besides.
void Engine::look(Group& g, Request& r, double t) {
  r.look = t + kNextLook;
  check_peers(g.ranks, r.what);
  for (size_t i = 0; i < r.sum_count; i++)
    if (const std::string other = r.sums[i]->difference(g.ranks); !other.empty())
      give_up(PG_E_INVALID_ARGUMENT, r.what, "cannot be completed: " + other);
  if (r.late == 0) return;
  const double allowed = r.late - r.begun;
  if (!r.told && t - r.begun >= std::min(1.0, allowed / 10)) tell(g, r);
  std::string elsewhere;
  if (r.told && r.number != 0) {
    find_absent(g, r, elsewhere);
    if (!elsewhere.empty()) give_up(PG_E_FAILED_PRECONDITION, r.what, "cannot be completed: " + elsewhere);
  }
  r.look = std::min(r.look, r.late);
  if (t < r.late) return;
  if (!r.told) tell(g, r);
  std::vector<int> absent;
  for (double until = now() + kGrace; now() < until; usleep(5000)) absent = find_absent(g, r, elsewhere);
  std::string text = pg::format("took more than %g seconds: ", allowed);
  if (r.number == 0) {
    text += pg::format("rank %d of the group did not answer", r.calls[0].peer);
  } else if (absent.empty()) {
    text += "all ranks have come to it, but it did not end";
  } else {
    text += absent_text(absent) + " it" + (elsewhere.empty() ? "" : "; " + elsewhere);
  }
  give_up(PG_E_DEADLINE_EXCEEDED, r.what, text);
}

// "rank 1 (whose process is stopped) has not come to"
std::string Engine::absent_text(const std::vector<int>& absent) {
  std::vector<int> stopped;
  for (int rank : absent)
    if (state_of(processes_[static_cast<size_t>(rank)]) == PG_PEER_STOPPED) stopped.push_back(rank);
  std::string text = name_ranks(absent);
  if (!stopped.empty())
    text += stopped.size() == absent.size() ? " (stopped)" : " (" + name_ranks(stopped) + " stopped)";
  return text + (absent.size() == 1 ? " has not come to" : " have not come to");
}

// Small messages, which MPI takes at once: they need nobody who receives them.
void Engine::tell(Group& g, Request& r) {
  r.told = true;
  if (r.number == 0) return;
  Arrived message{r.number, {}};
  std::snprintf(message.what, sizeof message.what, "%s", text_of(r).c_str());
  for (int i = 0; i < static_cast<int>(g.ranks.size()); i++) {
    if (i == g.rank) continue;
    MPI_Request handle;
    check(MPI_Isend(&message, sizeof message, MPI_BYTE, i, kArrived, g.own, &handle), r.what);
    check(MPI_Request_free(&handle), r.what);
  }
}

// Ranks of the world that have not said that they came to this call. `elsewhere`: what one of them waits for instead.
std::vector<int> Engine::find_absent(Group& g, const Request& r, std::string& elsewhere) {
  for (;;) {
    int here = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kArrived, g.own, &here, &status), r.what);
    if (!here) break;
    Arrived message{};
    check(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, kArrived, g.own, MPI_STATUS_IGNORE), r.what);
    g.arrived[status.MPI_SOURCE] = message;
  }
  const std::string own = text_of(r);
  std::vector<int> absent;
  elsewhere.clear();
  for (int i = 0; i < static_cast<int>(g.ranks.size()); i++) {
    if (i == g.rank) continue;
    const auto known = g.arrived.find(i);
    const bool has = known != g.arrived.end();
    if (has && known->second.number == r.number && own == known->second.what) continue;
    absent.push_back(g.ranks[static_cast<size_t>(i)]);
    if (has && known->second.number == r.number && elsewhere.empty())
      elsewhere = pg::format("rank %d is at %s instead", g.ranks[static_cast<size_t>(i)], known->second.what);
  }
  return absent;
}

// Sends what those who wait for this process hear, and returns once it is under way.
void Engine::say_last(const std::string& reason) {
  last_words_ = reason.substr(0, kLastWords - 1);
  std::vector<MPI_Request> handles;
  for (int i = 0; i < size_; i++) {
    if (i == rank_ || state_of(processes_[static_cast<size_t>(i)]) == PG_PEER_LOST) continue;
    handles.emplace_back();
    MPI_Isend(last_words_.data(), static_cast<int>(last_words_.size()), MPI_CHAR, i, kLeft, control_, &handles.back());
  }
  int done = 0;
  for (double until = now() + 0.5; !done && now() < until;) {  // the launcher may end this process in a second
    MPI_Testall(static_cast<int>(handles.size()), handles.data(), &done, MPI_STATUSES_IGNORE);
    if (!done) usleep(5000);
  }
}

void Engine::leave(const char* reason) {
  if (!started_ || left_ || !broken_.empty()) return;
  left_ = true;
  const double until = now() + 1;
  say_last(reason);
  // They hear of it while they wait; the launcher ends them as soon as this process has ended.
  for (; now() < until; usleep(5000)) {
    int here = 0;  // what has been sent goes on its way
    MPI_Iprobe(MPI_ANY_SOURCE, kLeft, control_, &here, MPI_STATUS_IGNORE);
    bool any = false;
    for (int i = 0; i < size_; i++) any |= i != rank_ && state_of(processes_[static_cast<size_t>(i)]) == PG_PEER_ALIVE;
    if (!any) return;
  }
}

// What failed is said by whoever called it.
void Engine::break_all(int32_t code, const std::string& what, const std::string& why) {
  if (broken_.empty()) broken_ = what + ": " + why;
  pg::fail(code, why);
}

// The same, of what the others cannot see: they would wait for this rank until their own deadlines. They are told now,
// for behind a failure MPI is not called again.
void Engine::give_up(int32_t code, const std::string& what, const std::string& why) {
  if (broken_.empty()) say_last(what + ": " + why);
  break_all(code, what, why);
}

}  // namespace mpi
