// SPDX-License-Identifier: Apache-2.0
// Calls that all ranks of a group make: begun, waited for, finished.
#include <algorithm>
#include <climits>
#include <cstring>

#include "engine.hpp"
#include "waiting.hpp"

namespace mpi {
namespace {

constexpr int kShortWait = 64;  // looks in vain behind which a wait asks for the time

int whole(uint64_t count) {
  if (count > INT_MAX)
    pg::fail_support(
        pg::format("%llu elements; MPI takes %d at a time", static_cast<unsigned long long>(count), INT_MAX));
  return static_cast<int>(count);
}

void* at(pg_address a) { return reinterpret_cast<void*>(a.buffer + a.offset); }

// What is halved on the way, and not divided in the end: all that `sums` computes of two.
bool is_mean_of_two(const pg_collective& c, size_t ranks) {
  return c.kind == PG_COLLECTIVE_ALL_REDUCE && c.reduction == PG_REDUCE_MEAN && ranks == 2;
}

bool reduces(uint32_t kind) {
  return kind == PG_COLLECTIVE_ALL_REDUCE || kind == PG_COLLECTIVE_REDUCE || kind == PG_COLLECTIVE_REDUCE_SCATTER;
}

}  // namespace

void Request::clear() {
  handles.clear();
  receives.clear();
  calls.clear();
  sum_count = 0;
  number = 0;
  late = 0;
  told = false;
}

// Sums keep their room, so they are used again.
Sum& Request::add_sum() {
  if (sum_count == sums.size()) sums.push_back(std::make_unique<Sum>());
  return *sums[sum_count++];
}

void Engine::begin_sum(Group& g, Request& r, const pg_collective& c, int count, const Reduction& reduction) {
  SumCall call{g.own,
               g.rank,
               static_cast<int>(g.ranks.size()),
               r.number,
               at(c.input),
               at(c.output),
               count,
               static_cast<uint64_t>(pg::dtype_bytes(c.dtype)),
               reduction,
               uint64_t{c.dtype} * 4 + c.reduction,
               g.room.get()};
  r.receives.push_back(-1);
  r.handles.push_back(MPI_REQUEST_NULL);
  Sum& sum = r.add_sum();
  sums_.push_back(&sum);
  sum.begin(call);
  check(sum.code(), r.what);
}

void Engine::begin(Group& g, Request& r, const pg_collective& c) {
  const int count = whole(c.count), size = static_cast<int>(g.ranks.size());
  const bool pairs = c.kind == PG_COLLECTIVE_SEND || c.kind == PG_COLLECTIVE_RECEIVE;
  if (pairs && (c.peer < 0 || c.peer >= size)) pg::fail_argument(pg::format("rank %d is not in the group", c.peer));
  const bool computes = reduces(c.kind);
  const Reduction reduction = is_mean_of_two(c, g.ranks.size()) ? mean_of_two(c.dtype)
                              : computes                        ? mpi::reduction(c.dtype, c.reduction)
                                                                : Reduction{};
  const MPI_Datatype type = computes ? reduction.type : carrier(c.dtype);
  const uint64_t bytes = c.count * static_cast<uint64_t>(pg::dtype_bytes(c.dtype));
  if (!pairs) r.number = ++g.calls;
  if (c.kind == PG_COLLECTIVE_ALL_REDUCE && Sum::suits(size, bytes)) return begin_sum(g, r, c, count, reduction);
  const void* in = c.input.buffer == c.output.buffer && c.input.offset == c.output.offset && c.count > 0 ? MPI_IN_PLACE
                                                                                                         : at(c.input);
  MPI_Request made = MPI_REQUEST_NULL, *handle = &made;
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
  check(code, r.what);
  r.handles.push_back(made);
  r.receives.push_back(c.kind == PG_COLLECTIVE_RECEIVE ? count : -1);
}

uint64_t Engine::submit(uint64_t group, uint32_t count, const pg_collective* const* calls) {
  Group& g = find(group);
  std::unique_ptr<Request> made;
  if (spare_.empty()) {
    made = std::make_unique<Request>();
  } else {
    made = std::move(spare_.back());
    spare_.pop_back();
  }
  Request& r = *made;
  r.clear();
  r.id = ++last_request_;
  r.calls.reserve(count);
  for (uint32_t i = 0; i < count; i++) r.calls.push_back(*calls[i]);
  r.what = count > 0 && calls[0]->what != nullptr ? calls[0]->what : "a collective";
  g.requests.push_back(std::move(made));
  try {
    for (const pg_collective& c : r.calls) begin(g, r, c);
  } catch (...) {  // what has begun stays MPI's
    if (r.handles.empty()) g.requests.pop_back();
    throw;
  }
  r.begun = roughly_now();
  r.look = r.begun + kFirstLook;
  for (const pg_collective& c : r.calls)
    if (c.deadline > 0) r.late = r.begun + c.deadline;
  return r.id;
}

// Every sum goes on, whichever is waited for: another rank may wait for another one.
void Engine::advance_sums(const std::string& what) {
  for (size_t i = 0; i < sums_.size();) {
    const bool over = sums_[i]->advance();
    check(sums_[i]->code(), what);
    if (over) {
      sums_.erase(sums_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      i++;
    }
  }
}

bool Engine::is_over(Request& r) {
  if (sums_.size() == 1 && r.sum_count == 1 && sums_[0] == r.sums[0].get()) {  // nothing else is under way
    const bool over = sums_[0]->advance();
    check(sums_[0]->code(), r.what);
    if (!over) return false;
    sums_.clear();
  } else if (!sums_.empty()) {
    advance_sums(r.what);
    for (size_t i = 0; i < r.sum_count; i++)
      if (std::find(sums_.begin(), sums_.end(), r.sums[i].get()) != sums_.end()) return false;
  }
  if (r.sum_count == r.handles.size()) return true;
  r.statuses.resize(r.handles.size());
  int done = 0;
  check(MPI_Testall(static_cast<int>(r.handles.size()), r.handles.data(), &done, r.statuses.data()), r.what);
  return done != 0;
}

// MPI goes on with all that is under way whenever it is asked anything, which memory that ranks share is not.
void Engine::take_messages(const std::string& what) {
  int here = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, kLeft, control_, &here, MPI_STATUS_IGNORE), what);
}

bool Engine::wait(uint64_t group, uint64_t id, double seconds) {
  Group& g = find(group);
  size_t place = g.requests.size();
  while (place > 0 && g.requests[place - 1]->id != id) place--;
  if (place-- == 0) pg::fail_argument("there is no such request");
  Request& r = *g.requests[place];
  bool over = is_over(r);
  for (int look = 0; !over && seconds > 0 && look < kShortWait; look++) over = is_over(r);
  if (!over) over = wait_long(g, r, seconds);
  if (!over) return false;
  finish(g, r);
  spare_.push_back(std::move(g.requests[place]));
  g.requests.erase(g.requests.begin() + static_cast<std::ptrdiff_t>(place));
  return true;
}

bool Engine::wait_long(Group& g, Request& r, double seconds) {
  const double begun = now();
  Waiting waiting;
  for (Patience patience(begun > r.look);; patience.rest()) {
    if (is_over(r)) return true;
    if (patience.wants_messages()) take_messages(r.what);
    if (!patience.wants_time() && seconds > 0) continue;
    const double t = now();
    if (t > r.look || was_terminated()) look(g, r, t);
    if (t - begun >= seconds) return false;
  }
}

void Engine::finish(Group& g, Request& r) {
  for (size_t i = 0; i < r.calls.size(); i++) {
    const pg_collective& c = r.calls[i];
    if (reduces(c.kind) && c.reduction == PG_REDUCE_MEAN && !is_mean_of_two(c, g.ranks.size()) &&
        (c.kind != PG_COLLECTIVE_REDUCE || c.peer == g.rank))
      divide(c.dtype, at(c.output), c.count, static_cast<double>(g.ranks.size()));
    if (r.receives[i] < 0) continue;
    int got = 0;
    MPI_Get_count(&r.statuses[i], carrier(c.dtype), &got);
    if (got != r.receives[i])
      give_up(PG_E_INVALID_ARGUMENT, r.what,
              pg::format("rank %d sent %d elements; this rank expected %lld", c.peer, got,
                         static_cast<long long>(r.receives[i])));
  }
}

}  // namespace mpi
