// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "reductions.hpp"

namespace mpi {
namespace {

// Tags of messages of the engine's own, above those of users.
constexpr int kArrived = 32768, kMeet = 32769, kLeft = 32770;
constexpr const char* kMaking = "making a group";
constexpr double kFirstLook = 0.05, kNextLook = 0.2;  // seconds after which a call that waits looks around
constexpr double kGrace = 0.3;                        // seconds in which what others have sent arrives

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Looks at a request before others get the processor: few where there are more processes than processors, and some
// milliseconds' worth where each has its own, since what it gives away for a moment comes back late on a machine with
// other work.
constexpr uint64_t kFewLooks = 500, kManyLooks = 20000;
uint64_t looks = kFewLooks;  // of this process

void relax(uint64_t spins) {
  if (spins < looks) return;
  if (spins < looks + 4500) {
    sched_yield();
    return;
  }
  const timespec pause{0, spins < looks + 49500 ? 20000 : 200000};
  nanosleep(&pause, nullptr);
}

bool was_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

int whole(uint64_t count) {
  if (count > INT_MAX)
    pg::fail_support(
        pg::format("%llu elements; MPI takes %d at a time", static_cast<unsigned long long>(count), INT_MAX));
  return static_cast<int>(count);
}

void* at(pg_address a) { return reinterpret_cast<void*>(a.buffer + a.offset); }

bool reduces(uint32_t kind) {
  return kind == PG_COLLECTIVE_ALL_REDUCE || kind == PG_COLLECTIVE_REDUCE || kind == PG_COLLECTIVE_REDUCE_SCATTER;
}

}  // namespace

void Engine::check(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  break_all(PG_E_INTERNAL, what, text);
}

// What failed is said by whoever called it.
void Engine::break_all(int32_t code, const std::string& what, const std::string& why) {
  if (broken_.empty()) broken_ = what + ": " + why;
  pg::fail(code, why);
}

pg_world Engine::world() {
  if (!started_ && broken_.empty() && was_launched()) join();
  pg_world w{};
  w.rank = static_cast<uint32_t>(rank_);
  w.count = static_cast<uint32_t>(size_);
  w.local_count = 1;
  if (!processes_.empty()) {
    w.local_count = 0;
    for (int i = 0; i < size_; i++) {
      if (std::strcmp(processes_[i].machine, processes_[rank_].machine) != 0) continue;
      if (i == rank_) w.local_rank = w.local_count;
      w.local_count++;
    }
  }
  return w;
}

void Engine::join() {
  // MPI's own modules look for its symbols among the global ones, and plugins are loaded locally.
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) != 0 && library.dli_fname != nullptr)
    dlopen(library.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int provided = 0, before = 0;
  MPI_Initialized(&before);
  if (before) pg::fail(PG_E_FAILED_PRECONDITION, "MPI has been initialised by somebody else in this process");
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    pg::fail(PG_E_FAILED_PRECONDITION, "MPI_Init_thread failed; was the process started by mpirun?");
  started_ = true;
  if (provided < MPI_THREAD_SERIALIZED)
    pg::fail_support("this MPI is for one thread only; MPI_THREAD_SERIALIZED is needed");
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(control_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(control_, &rank_);
  MPI_Comm_size(control_, &size_);
  const Process self = this_process();
  processes_.resize(static_cast<size_t>(size_));
  check(MPI_Allgather(&self, sizeof self, MPI_BYTE, processes_.data(), sizeof self, MPI_BYTE, control_), "world");
  if (size_ > 1) watch_termination(processes_);
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof processors, &processors) == 0 &&
      static_cast<int>(world().local_count) <= CPU_COUNT(&processors))
    looks = kManyLooks;
}

// Leaves together with all others. One that cannot, because somebody is gone, ends without a farewell: MPI_Finalize
// would wait for ever.
Engine::~Engine() {
  if (!started_ || left_ || !broken_.empty()) return;
  try {
    std::vector<int> all;
    for (int i = 0; i < size_; i++) all.push_back(i);
    MPI_Request request;
    check(MPI_Ibarrier(control_, &request), "the end");
    Waiting waiting;
    int done = 0;
    for (uint64_t spins = 0; !done; spins++) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "the end");
      if (done) break;
      if (spins % 1024 == 1023) check_peers(all, "the end");
      relax(spins);
    }
    for (auto& [id, group] : groups_) MPI_Comm_free(&group->comm);
    free_reductions();
    MPI_Comm_free(&control_);
    MPI_Finalize();
  } catch (const pg::Error& error) {
    pg::log(PG_LOG_DEBUG, error.what());
  }
}

Group& Engine::find(uint64_t id) {
  if (!broken_.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "not possible any more since " + broken_);
  if (left_) pg::fail(PG_E_FAILED_PRECONDITION, "this process has left the others");
  auto found = groups_.find(id);
  if (found == groups_.end()) pg::fail_argument("there is no such group");
  return *found->second;
}

uint64_t Engine::create(const pg_group_info& info, double deadline) {
  if (!broken_.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "not possible any more since " + broken_);
  if (!started_) pg::fail(PG_E_FAILED_PRECONDITION, "this process was not launched together with others");
  auto made = std::make_unique<Group>();
  for (uint32_t i = 0; i < info.count; i++) {
    made->ranks.push_back(info.ranks[i]);
    if (info.ranks[i] == rank_) made->rank = static_cast<int>(i);
  }
  meet(made->ranks, deadline);
  MPI_Group everybody, members;
  check(MPI_Comm_group(control_, &everybody), kMaking);
  check(MPI_Group_incl(everybody, static_cast<int>(made->ranks.size()), made->ranks.data(), &members), kMaking);
  check(MPI_Comm_create_group(control_, members, kMeet, &made->comm), kMaking);
  MPI_Group_free(&members);
  MPI_Group_free(&everybody);
  MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
  groups_[++last_group_] = std::move(made);
  return last_group_;
}

// Making a group has no deadline in MPI: before, all of its members tell each other that they are here.
void Engine::meet(const std::vector<int>& ranks, double deadline) {
  std::vector<MPI_Request> handles;
  std::vector<int> from;
  char nothing = 0;
  for (int rank : ranks) {
    if (rank == rank_) continue;
    handles.emplace_back();
    check(MPI_Irecv(&nothing, 0, MPI_BYTE, rank, kMeet, control_, &handles.back()), kMaking);
    from.push_back(rank);
  }
  const size_t expected = handles.size();
  for (int rank : ranks) {
    if (rank == rank_) continue;
    handles.emplace_back();
    check(MPI_Isend(&nothing, 0, MPI_BYTE, rank, kMeet, control_, &handles.back()), kMaking);
  }
  const double begun = now();
  double next = begun + kFirstLook;
  Waiting waiting;
  for (uint64_t spins = 0;; spins++) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(handles.size()), handles.data(), &done, MPI_STATUSES_IGNORE), kMaking);
    if (done) return;
    const double t = now();
    if (t > next || was_terminated()) {
      check_peers(ranks, kMaking);
      next = t + kNextLook;
    }
    if (deadline > 0 && t > begun + deadline) {
      std::vector<int> absent;
      for (size_t i = 0; i < expected; i++) {
        check(MPI_Test(&handles[i], &done, MPI_STATUS_IGNORE), kMaking);
        if (!done) absent.push_back(from[i]);
      }
      if (absent.empty()) continue;
      break_all(PG_E_DEADLINE_EXCEEDED, kMaking,
                pg::format("within %g seconds, ", deadline) + absent_text(absent) + " make a group");
    }
    relax(spins);
  }
}

void Engine::destroy(uint64_t id) {
  auto found = groups_.find(id);
  if (found == groups_.end()) pg::fail_argument("there is no such group");
  // Communicators are freed when all leave together (see ~Engine): here the others may still wait for this one.
  if (found->second->requests.empty()) return;
  pg::fail(PG_E_BUSY, "calls of this group are pending");
}

void Engine::begin(Group& g, Request& r, const pg_collective& c) {
  const int count = whole(c.count), size = static_cast<int>(g.ranks.size());
  const bool pairs = c.kind == PG_COLLECTIVE_SEND || c.kind == PG_COLLECTIVE_RECEIVE;
  if (pairs && (c.peer < 0 || c.peer >= size)) pg::fail_argument(pg::format("rank %d is not in the group", c.peer));
  const bool computes = reduces(c.kind);
  const Reduction reduction = computes ? mpi::reduction(c.dtype, c.reduction) : Reduction{};
  const MPI_Datatype type = computes ? reduction.type : carrier(c.dtype);
  const void* in = c.input.buffer == c.output.buffer && c.input.offset == c.output.offset && c.count > 0 ? MPI_IN_PLACE
                                                                                                         : at(c.input);
  const uint64_t bytes = c.count * static_cast<uint64_t>(pg::dtype_bytes(c.dtype));
  r.handles.push_back(MPI_REQUEST_NULL);
  r.receives.push_back(c.kind == PG_COLLECTIVE_RECEIVE ? count : -1);
  MPI_Request* handle = &r.handles.back();
  int code = MPI_SUCCESS;
  switch (c.kind) {
    case PG_COLLECTIVE_BARRIER: code = MPI_Ibarrier(g.comm, handle); break;
    case PG_COLLECTIVE_ALL_REDUCE:
      code = MPI_Iallreduce(in, at(c.output), count, type, reduction.op, g.comm, handle);
      break;
    case PG_COLLECTIVE_REDUCE:
      code = MPI_Ireduce(g.rank == c.peer ? in : at(c.input), at(c.output), count, type, reduction.op, c.peer, g.comm,
                         handle);
      break;
    case PG_COLLECTIVE_BROADCAST:
      if (g.rank == c.peer && in != MPI_IN_PLACE && bytes > 0) std::memcpy(at(c.output), in, bytes);
      code = MPI_Ibcast(at(c.output), count, type, c.peer, g.comm, handle);
      break;
    case PG_COLLECTIVE_ALL_GATHER:
      code = MPI_Iallgather(at(c.input), count, type, at(c.output), count, type, g.comm, handle);
      break;
    case PG_COLLECTIVE_REDUCE_SCATTER:
      code = MPI_Ireduce_scatter_block(at(c.input), at(c.output), count, type, reduction.op, g.comm, handle);
      break;
    case PG_COLLECTIVE_ALL_TO_ALL:
      code = MPI_Ialltoall(at(c.input), count, type, at(c.output), count, type, g.comm, handle);
      break;
    case PG_COLLECTIVE_SEND: code = MPI_Isend(at(c.input), count, type, c.peer, c.tag, g.comm, handle); break;
    case PG_COLLECTIVE_RECEIVE: code = MPI_Irecv(at(c.output), count, type, c.peer, c.tag, g.comm, handle); break;
    default: pg::fail_support(pg::format("collective %u is unknown", c.kind));
  }
  if (!pairs) r.number = ++g.calls;
  check(code, r.what);
}

uint64_t Engine::submit(uint64_t group, uint32_t count, const pg_collective* const* calls) {
  Group& g = find(group);
  Request r;
  r.begun = now();
  r.look = r.begun + kFirstLook;
  for (uint32_t i = 0; i < count; i++) {
    const pg_collective& c = *calls[i];
    if (i == 0) r.what = c.what != nullptr ? c.what : "a collective";
    if (c.deadline > 0) r.late = r.begun + c.deadline;
    r.calls.push_back(c);
  }
  for (const pg_collective& c : r.calls) begin(g, r, c);
  g.requests[++last_request_] = std::move(r);
  return last_request_;
}

bool Engine::wait(uint64_t group, uint64_t id, double seconds) {
  Group& g = find(group);
  auto found = g.requests.find(id);
  if (found == g.requests.end()) pg::fail_argument("there is no such request");
  Request& r = found->second;
  std::vector<MPI_Status> statuses(r.handles.size());
  const double begun = now();
  Waiting waiting;
  for (uint64_t spins = begun > r.look ? looks + 4500 : 0;; spins++) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(r.handles.size()), r.handles.data(), &done, statuses.data()), r.what);
    if (done) {
      finish(g, r, statuses);
      g.requests.erase(found);
      return true;
    }
    if (spins % 64 != 63 && spins < looks + 4500 && seconds > 0) {
      relax(spins);
      continue;
    }
    const double t = now();
    if (t > r.look || was_terminated()) look(g, r, t);
    if (t - begun >= seconds) return false;
    relax(spins);
  }
}

void Engine::finish(Group& g, Request& r, const std::vector<MPI_Status>& statuses) {
  for (size_t i = 0; i < r.calls.size(); i++) {
    const pg_collective& c = r.calls[i];
    if (reduces(c.kind) && c.reduction == PG_REDUCE_MEAN && (c.kind != PG_COLLECTIVE_REDUCE || c.peer == g.rank))
      divide(c.dtype, at(c.output), c.count, static_cast<double>(g.ranks.size()));
    if (r.receives[i] < 0) continue;
    int got = 0;
    MPI_Get_count(&statuses[i], carrier(c.dtype), &got);
    if (got != r.receives[i])
      break_all(PG_E_INVALID_ARGUMENT, r.what,
                pg::format("rank %d sent %d elements; this rank expected %lld", c.peer, got,
                           static_cast<long long>(r.receives[i])));
  }
}

// Fails if one of the others has ended, as far as can be seen.
void Engine::check_peers(const std::vector<int>& ranks, const std::string& what) {
  int here = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kLeft, control_, &here, &status);
  if (here) {
    char reason[400] = {};
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
  if (r.late == 0) return;
  const double allowed = r.late - r.begun;
  if (!r.told && t - r.begun >= std::min(1.0, allowed / 10)) tell(g, r);
  r.look = std::min(r.look, r.late);
  if (t < r.late) return;
  if (!r.told) tell(g, r);
  std::string elsewhere;
  std::vector<int> absent;
  for (double until = now() + kGrace; now() < until; usleep(5000)) absent = find_absent(g, r, elsewhere);
  std::string text = pg::format("took more than %g seconds: ", allowed);
  if (r.number == 0) {
    text += pg::format("rank %d of the group did not answer", r.calls[0].peer);
  } else if (absent.empty()) {
    text += "all ranks have come to it, but it did not end";
  } else {
    text += absent_text(absent) + " it" + elsewhere;
  }
  break_all(PG_E_DEADLINE_EXCEEDED, r.what, text);
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
  std::snprintf(message.what, sizeof message.what, "%s", r.what.c_str());
  for (int i = 0; i < static_cast<int>(g.ranks.size()); i++) {
    if (i == g.rank) continue;
    MPI_Request handle;
    check(MPI_Isend(&message, sizeof message, MPI_BYTE, i, kArrived, g.comm, &handle), r.what);
    check(MPI_Request_free(&handle), r.what);
  }
}

// Ranks of the world that have not said that they came to this call. `elsewhere`: what one of them waits for instead.
std::vector<int> Engine::find_absent(Group& g, const Request& r, std::string& elsewhere) {
  for (;;) {
    int here = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, kArrived, g.comm, &here, &status), r.what);
    if (!here) break;
    Arrived message{};
    check(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, kArrived, g.comm, MPI_STATUS_IGNORE), r.what);
    g.arrived[status.MPI_SOURCE] = message;
  }
  std::vector<int> absent;
  elsewhere.clear();
  for (int i = 0; i < static_cast<int>(g.ranks.size()); i++) {
    if (i == g.rank) continue;
    const auto known = g.arrived.find(i);
    const bool has = known != g.arrived.end();
    if (has && known->second.number == r.number && r.what == known->second.what) continue;
    absent.push_back(g.ranks[static_cast<size_t>(i)]);
    if (has && known->second.number == r.number && elsewhere.empty())
      elsewhere = pg::format("; rank %d is at %s instead", g.ranks[static_cast<size_t>(i)], known->second.what);
  }
  return absent;
}

void Engine::leave(const char* reason) {
  if (!started_ || left_ || !broken_.empty()) return;
  left_ = true;
  char text[400];
  std::snprintf(text, sizeof text, "%s", reason);
  std::vector<MPI_Request> handles;
  for (int i = 0; i < size_; i++) {
    if (i == rank_ || state_of(processes_[static_cast<size_t>(i)]) == PG_PEER_LOST) continue;
    handles.emplace_back();
    MPI_Isend(text, static_cast<int>(std::strlen(text)), MPI_CHAR, i, kLeft, control_, &handles.back());
  }
  // They hear of it while they wait; the launcher ends them as soon as this process has ended.
  int done = 0;
  for (double until = now() + 1; now() < until; usleep(5000)) {
    MPI_Testall(static_cast<int>(handles.size()), handles.data(), &done, MPI_STATUSES_IGNORE);
    bool any = false;
    for (int i = 0; i < size_; i++) any |= i != rank_ && state_of(processes_[static_cast<size_t>(i)]) == PG_PEER_ALIVE;
    if (!any) return;
  }
}

void Engine::peers(uint64_t group, uint32_t count, uint32_t* states) {
  auto found = groups_.find(group);
  if (found == groups_.end()) pg::fail_argument("there is no such group");
  const std::vector<int>& ranks = found->second->ranks;
  for (size_t i = 0; i < ranks.size() && i < count; i++)
    states[i] = ranks[i] == rank_ ? PG_PEER_ALIVE : state_of(processes_[static_cast<size_t>(ranks[i])]);
}

}  // namespace mpi
