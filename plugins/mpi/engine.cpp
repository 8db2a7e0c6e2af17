// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "waiting.hpp"

namespace mpi {
namespace {

bool was_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace

void Engine::check(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  break_all(PG_E_INTERNAL, what, text);
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
    Patience patience;
    double next = now() + kFirstLook;
    for (int done = 0;; patience.rest()) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "the end");
      if (done) break;
      advance_sums("the end");
      if (!patience.wants_time() || now() < next) continue;
      check_peers(all, "the end");
      next = now() + kNextLook;
    }
    for (auto& [id, group] : groups_) {
      MPI_Comm_free(&group->own);
      MPI_Comm_free(&group->comm);
    }
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

void Engine::destroy(uint64_t id) {
  auto found = groups_.find(id);
  if (found == groups_.end()) pg::fail_argument("there is no such group");
  // Communicators are freed when all leave together (see ~Engine): here the others may still wait for this one.
  if (found->second->requests.empty()) return;
  pg::fail(PG_E_BUSY, "calls of this group are pending");
}

void Engine::peers(uint64_t group, uint32_t count, uint32_t* states) {
  auto found = groups_.find(group);
  if (found == groups_.end()) pg::fail_argument("there is no such group");
  const std::vector<int>& ranks = found->second->ranks;
  for (size_t i = 0; i < ranks.size() && i < count; i++)
    states[i] = ranks[i] == rank_ ? PG_PEER_ALIVE : state_of(processes_[static_cast<size_t>(ranks[i])]);
}

}  // namespace mpi
