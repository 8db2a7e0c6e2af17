// SPDX-License-Identifier: Apache-2.0
#include "sums.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "waiting.hpp"

namespace mpi {
namespace {

// So many calls of a group may be under way, with tags below kArrived, which every MPI has.
constexpr int kCallsAtOnce = kArrived / 2;
// Bytes up to which ranks exchange all that they have: two of them save a round, and more use MPI's own schedule
// behind that, which divides the work.
constexpr uint64_t kWholeOfTwo = 256 * 1024, kWholeOfMany = 16 * 1024;
// What stays in a processor's cache, in parts while one follows another.
constexpr uint64_t kOneChunk = 1024 * 1024, kChunk = 512 * 1024;
// MPI sends up to about 4 KB at once and asks the other side first where it is more. What is a little more goes at once
// in two messages.
constexpr uint64_t kAtOnce = 3840;

}  // namespace

bool Sum::suits(int ranks, uint64_t bytes) { return ranks == 2 || (ranks > 2 && bytes <= kWholeOfMany); }

void Sum::begin(const SumCall& call) {
  call_ = call;
  bytes_ = static_cast<uint64_t>(call.count) * call.item;
  code_ = MPI_SUCCESS;
  halves_ = call.ranks == 2 && bytes_ > kWholeOfTwo;
  shared_ = call.room != nullptr && call.room->suits(bytes_);
  if (shared_) {
    number_ = call.room->begin(room_sum());
    return;
  }
  if (!halves_) return begin_doubling();
  chunk_ = bytes_ <= kOneChunk ? kOneChunk : kChunk;
  chunks_ = (bytes_ + chunk_ - 1) / chunk_;
  posted_ = added_ = done_ = 0;
  while (posted_ < chunks_ && posted_ < kChunks) post_chunk();
}

bool Sum::advance() {
  if (code_ != MPI_SUCCESS) return false;
  if (shared_) return call_.room->advance(room_sum(), number_);
  return halves_ ? advance_halves() : advance_doubling();
}

RoomSum Sum::room_sum() const {
  return {call_.in, call_.out, call_.count, call_.item, call_.about, call_.reduction.combine};
}

std::string Sum::difference(const std::vector<int>& ranks) const {
  return shared_ ? call_.room->difference(room_sum(), number_, ranks) : "";
}

int Sum::tag_of(int part) const { return 2 * static_cast<int>(call_.number % kCallsAtOnce) + part; }

void Sum::send(const void* from, uint64_t count, int peer, int part, MPI_Request* handle) {
  note(MPI_Isend(from, static_cast<int>(count), call_.reduction.type, peer, tag_of(part), call_.comm, handle));
}

void Sum::receive(void* into, uint64_t count, int peer, int part, MPI_Request* handle) {
  note(MPI_Irecv(into, static_cast<int>(count), call_.reduction.type, peer, tag_of(part), call_.comm, handle));
}

bool Sum::are_over(MPI_Request* handles, int count) {
  int over = 0;
  note(MPI_Testall(count, handles, &over, MPI_STATUSES_IGNORE));
  return over != 0;
}

// upper = lower (op) upper
void Sum::add(const void* lower, void* upper, uint64_t count) {
  note(MPI_Reduce_local(lower, upper, static_cast<int>(count), call_.reduction.type, call_.reduction.op));
}

char* Sum::room(uint64_t bytes) {
  if (room_.size() < bytes) room_.resize(bytes);
  return room_.data();
}

// ---- all that a rank has, with one rank after another ----

void Sum::begin_doubling() {
  power_ = static_cast<int>(std::bit_floor(static_cast<unsigned>(call_.ranks)));
  extra_ = call_.ranks - power_;
  held_ = static_cast<const char*>(call_.in);
  distance_ = 1;
  if (call_.rank >= 2 * extra_) {
    place_ = call_.rank - extra_;
    return next_exchange();
  }
  handle_count_ = 1;
  if (call_.rank % 2 == 0) {
    step_ = Step::give;
    return send(call_.in, static_cast<uint64_t>(call_.count), call_.rank + 1, 0, handles_);
  }
  place_ = call_.rank / 2;
  fold();
}

void Sum::fold() {
  step_ = Step::fold;
  below_ = true;
  into_ = room(bytes_);
  receive(into_, static_cast<uint64_t>(call_.count), call_.rank - 1, 0, handles_);
  own();
}

// What is to be added to becomes this rank's: meanwhile messages are on their way.
void Sum::own() {
  if (held_ != call_.in || call_.in == call_.out) return;
  std::memcpy(call_.out, held_, bytes_);
  held_ = static_cast<const char*>(call_.out);
}

void Sum::next_exchange() {
  if (distance_ < power_) return exchange(rank_of(place_ ^ distance_));
  char* out = static_cast<char*>(call_.out);
  if (held_ != out) std::memcpy(out, held_, bytes_);
  handle_count_ = 0;
  step_ = Step::give_back;
  if (call_.rank >= 2 * extra_) return;
  handle_count_ = 1;
  send(out, static_cast<uint64_t>(call_.count), call_.rank - 1, 1, handles_);
}

void Sum::exchange(int peer) {
  step_ = Step::exchange;
  below_ = peer < call_.rank;
  char* out = static_cast<char*>(call_.out);
  const uint64_t count = static_cast<uint64_t>(call_.count);
  const uint64_t first = bytes_ > kAtOnce && bytes_ <= 2 * kAtOnce ? kAtOnce / call_.item : count;
  const uint64_t rest = first * call_.item;
  handle_count_ = first < count ? 4 : 2;
  // What the peer waits for leaves first.
  send(held_, first, peer, 0, &handles_[0]);
  if (first < count) send(held_ + rest, count - first, peer, 0, &handles_[2]);
  // Not into what is sent, nor into what this rank will add to.
  into_ = held_ == out || (below_ && held_ == call_.in) ? room(bytes_) : out;
  receive(into_, first, peer, 0, &handles_[1]);
  if (first < count) receive(into_ + rest, count - first, peer, 0, &handles_[3]);
  if (below_) own();
}

// What has arrived and what there was become one.
void Sum::join() {
  const uint64_t count = static_cast<uint64_t>(call_.count);
  if (below_) return add(into_, held_ == call_.out ? static_cast<char*>(call_.out) : room_.data(), count);
  add(held_, into_, count);
  held_ = into_;
}

bool Sum::advance_doubling() {
  while (code_ == MPI_SUCCESS) {
    if (handle_count_ > 0 && !are_over(handles_, handle_count_)) return false;
    if (code_ != MPI_SUCCESS) return false;
    switch (step_) {
      case Step::give:
        step_ = Step::get;
        receive(call_.out, static_cast<uint64_t>(call_.count), call_.rank + 1, 1, handles_);
        break;
      case Step::fold:
        join();
        next_exchange();
        break;
      case Step::exchange:
        join();
        distance_ *= 2;
        next_exchange();
        break;
      case Step::get:
      case Step::give_back: return true;
    }
  }
  return false;
}

// ---- halves of chunks ----

Sum::Half Sum::half(uint64_t chunk, int rank) const {
  const uint64_t all = static_cast<uint64_t>(call_.count), most = chunk_ / call_.item, first = chunk * most;
  const uint64_t count = std::min(most, all - first), lower = count / 2;
  return rank == 0 ? Half{first, lower} : Half{first + lower, count - lower};
}

void Sum::post_chunk() {
  const Half mine = half(posted_, call_.rank), other = half(posted_, 1 - call_.rank);
  Chunk& chunk = under_way_[posted_ % kChunks];
  char* into = static_cast<char*>(call_.out) + mine.first * call_.item;
  if (call_.in == call_.out)
    into = room(std::min(chunks_, uint64_t{kChunks}) * chunk_ / 2) + (posted_ % kChunks) * (chunk_ / 2);
  receive(into, mine.count, 1 - call_.rank, 0, &chunk.halves[0]);
  send(static_cast<const char*>(call_.in) + other.first * call_.item, other.count, 1 - call_.rank, 0, &chunk.halves[1]);
  posted_++;
}

// The next chunk in order, so that messages of one tag meet in theirs. One rank alone adds an element, so the order of
// its two parts does not matter.
bool Sum::add_chunk() {
  Chunk& chunk = under_way_[added_ % kChunks];
  if (!are_over(chunk.halves, 2)) return false;
  const Half mine = half(added_, call_.rank), other = half(added_, 1 - call_.rank);
  char* out = static_cast<char*>(call_.out);
  const bool in_place = call_.in == call_.out;
  const void* given = in_place ? room_.data() + (added_ % kChunks) * (chunk_ / 2)
                               : static_cast<const char*>(call_.in) + mine.first * call_.item;
  receive(out + other.first * call_.item, other.count, 1 - call_.rank, 1, &chunk.sums[0]);
  add(given, out + mine.first * call_.item, mine.count);
  send(out + mine.first * call_.item, mine.count, 1 - call_.rank, 1, &chunk.sums[1]);
  added_++;
  return true;
}

bool Sum::advance_halves() {
  for (bool moved = true; moved && code_ == MPI_SUCCESS;) {
    moved = added_ < posted_ && add_chunk();
    if (done_ < added_ && are_over(under_way_[done_ % kChunks].sums, 2)) {
      moved = true;
      done_++;
    }
    if (posted_ < chunks_ && posted_ < done_ + kChunks) {
      moved = true;
      post_chunk();
    }
  }
  return done_ == chunks_ && code_ == MPI_SUCCESS;
}

}  // namespace mpi
