// SPDX-License-Identifier: Apache-2.0
// How groups are made: MPI has a deadline for none of it.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine.hpp"
#include "waiting.hpp"

namespace mpi {
namespace {

constexpr const char* kMaking = "making a group";
constexpr size_t kMostOfRoom = 64;  // ranks that share memory

// A communicator of some ranks, which MPI only makes in a call that returns when all have made it. What has begun can
// not be taken back, so a thread waits that the process can do without; nobody else calls MPI meanwhile.
struct Apart {
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  int code = MPI_SUCCESS;
  MPI_Comm comm = MPI_COMM_NULL;

  void run(MPI_Comm from, const std::vector<int>& ranks) {
    MPI_Group everybody = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    int failed = MPI_Comm_group(from, &everybody);
    if (failed == MPI_SUCCESS)
      failed = MPI_Group_incl(everybody, static_cast<int>(ranks.size()), ranks.data(), &members);
    if (failed == MPI_SUCCESS) failed = MPI_Comm_create_group(from, members, kMeet, &made);
    if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
    if (everybody != MPI_GROUP_NULL) MPI_Group_free(&everybody);
    std::lock_guard guard(mutex);
    code = failed;
    comm = made;
    done = true;
    ready.notify_one();
  }
};

// Signals are for the threads that were there before.
std::shared_ptr<Apart> begin_apart(MPI_Comm from, const std::vector<int>& ranks) {
  auto apart = std::make_shared<Apart>();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([apart, from, ranks] { apart->run(from, ranks); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return apart;
}

}  // namespace

struct Engine::Making {
  const std::vector<int>& ranks;
  double deadline, begun = now();
  bool is_late(double t) const { return deadline > 0 && t > begun + deadline; }
};

uint64_t Engine::create(const pg_group_info& info, double deadline) {
  if (!broken_.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "not possible any more since " + broken_);
  if (!started_) pg::fail(PG_E_FAILED_PRECONDITION, "this process was not launched together with others");
  auto made = std::make_unique<Group>();
  for (uint32_t i = 0; i < info.count; i++) {
    made->ranks.push_back(info.ranks[i]);
    if (info.ranks[i] == rank_) made->rank = static_cast<int>(i);
  }
  const Making making{made->ranks, deadline};
  meet(making);
  made->comm = made->ranks.size() == static_cast<size_t>(size_) ? copy(control_, making) : make_some(making);
  made->own = copy(made->comm, making);
  MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(made->own, MPI_ERRORS_RETURN);
  made->room = make_room(*made, making);
  groups_[++last_group_] = std::move(made);
  return last_group_;
}

void Engine::give_up_making(const Making& making) {
  std::vector<int> stopped;
  for (int rank : making.ranks)
    if (rank != rank_ && state_of(processes_[static_cast<size_t>(rank)]) != PG_PEER_ALIVE) stopped.push_back(rank);
  give_up(PG_E_DEADLINE_EXCEEDED, kMaking,
          stopped.empty()
              ? pg::format("took more than %g seconds", making.deadline)
              : pg::format("within %g seconds, ", making.deadline) + absent_text(stopped) + " make a group");
}

// Without waiting for ever: a rank may stop behind their meeting.
void Engine::complete(MPI_Request request, const Making& making) {
  double next = now() + kFirstLook;
  Waiting waiting;
  for (Patience patience;; patience.rest()) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), kMaking);
    if (done) return;
    advance_sums(kMaking);
    const double t = now();
    if (t > next || was_terminated()) {
      check_peers(making.ranks, kMaking);
      next = t + kNextLook;
    }
    if (making.is_late(t)) give_up_making(making);
  }
}

MPI_Comm Engine::copy(MPI_Comm from, const Making& making) {
  MPI_Comm copied = MPI_COMM_NULL;
  MPI_Request request;
  check(MPI_Comm_idup(from, &copied, &request), kMaking);
  complete(request, making);
  return copied;
}

// Once the thread is late MPI cannot be called, so nobody can be told: the others see that this process ends, or are
// late themselves.
MPI_Comm Engine::make_some(const Making& making) {
  const std::shared_ptr<Apart> apart = begin_apart(control_, making.ranks);
  Waiting waiting;
  std::unique_lock guard(apart->mutex);
  while (!apart->ready.wait_for(guard, std::chrono::duration<double>(kFirstLook), [&] { return apart->done; })) {
    std::vector<int> lost, stopped;
    for (int rank : making.ranks) {
      if (rank == rank_) continue;
      const uint32_t state = state_of(processes_[static_cast<size_t>(rank)]);
      if (state == PG_PEER_LOST) lost.push_back(rank);
      if (state == PG_PEER_STOPPED) stopped.push_back(rank);
    }
    if (!lost.empty())
      break_all(
          PG_E_FAILED_PRECONDITION, kMaking,
          pg::format("cannot be completed: %s %s ended", name_ranks(lost).c_str(), lost.size() == 1 ? "has" : "have"));
    if (was_terminated())
      break_all(PG_E_FAILED_PRECONDITION, kMaking, "cannot be completed: the launcher has ended the job");
    if (!making.is_late(now())) continue;
    break_all(PG_E_DEADLINE_EXCEEDED, kMaking,
              stopped.empty()
                  ? pg::format("took more than %g seconds", making.deadline)
                  : pg::format("within %g seconds, ", making.deadline) + absent_text(stopped) + " make a group");
  }
  check(apart->code, kMaking);
  return apart->comm;
}

// Memory that the group's first rank makes and the others open; none where they are not all of one machine, or where
// one of them cannot.
std::unique_ptr<Room> Engine::make_room(const Group& g, const Making& making) {
  const Process& first = processes_[static_cast<size_t>(g.ranks[0])];
  bool together = g.ranks.size() > 1 && g.ranks.size() <= kMostOfRoom;
  for (int rank : g.ranks)
    together = together && std::strcmp(processes_[static_cast<size_t>(rank)].machine, first.machine) == 0;
  if (!together) return nullptr;
  auto room = std::make_unique<Room>(g.rank, static_cast<int>(g.ranks.size()));
  int file = g.rank == 0 ? room->make() : -1, opened = 0;
  MPI_Request request;
  check(MPI_Ibcast(&file, 1, MPI_INT, 0, g.own, &request), kMaking);
  complete(request, making);
  const int mine = file >= 0 && (g.rank == 0 || room->open(first.pid, file));
  check(MPI_Iallreduce(&mine, &opened, 1, MPI_INT, MPI_MIN, g.own, &request), kMaking);
  complete(request, making);
  room->close_file();
  if (opened != 0) return room;
  pg::log(PG_LOG_INFO, "the ranks of this machine cannot share memory, so small sums go as messages");
  return nullptr;
}

// Before anything else, all members tell each other that they are here: who does not come is known by name.
void Engine::meet(const Making& making) {
  const std::vector<int>& ranks = making.ranks;
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
  double next = making.begun + kFirstLook;
  Waiting waiting;
  for (Patience patience;; patience.rest()) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(handles.size()), handles.data(), &done, MPI_STATUSES_IGNORE), kMaking);
    if (done) return;
    advance_sums(kMaking);
    const double t = now();
    if (t > next || was_terminated()) {
      check_peers(ranks, kMaking);
      next = t + kNextLook;
    }
    if (!making.is_late(t)) continue;
    std::vector<int> absent;
    for (double until = now() + kGrace; now() < until; usleep(5000)) {  // others give up at the same time
      absent.clear();
      for (size_t i = 0; i < expected; i++) {
        check(MPI_Test(&handles[i], &done, MPI_STATUS_IGNORE), kMaking);
        if (!done) absent.push_back(from[i]);
      }
    }
    if (absent.empty()) continue;
    give_up(PG_E_DEADLINE_EXCEEDED, kMaking,
            pg::format("within %g seconds, ", making.deadline) + absent_text(absent) + " make a group");
  }
}

}  // namespace mpi
