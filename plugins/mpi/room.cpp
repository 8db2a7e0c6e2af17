// SPDX-License-Identifier: Apache-2.0
#include "room.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cstring>

#include "perigee/plugin.hpp"

namespace mpi {
namespace {

// A moment that a processor's other thread may use.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Room::~Room() {
  close_file();
  if (all_ != nullptr) munmap(all_, sizeof(Rank) * static_cast<size_t>(ranks_));
}

bool Room::map(int file) {
  const size_t bytes = sizeof(Rank) * static_cast<size_t>(ranks_);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return false;
  all_ = static_cast<Rank*>(at);
  return true;
}

int Room::make() {
  const size_t bytes = sizeof(Rank) * static_cast<size_t>(ranks_);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < bytes) return -1;  // a larger file would be a signal
  file_ = memfd_create("perigee sums", MFD_CLOEXEC);
  if (file_ >= 0 && (ftruncate(file_, static_cast<off_t>(bytes)) != 0 || !map(file_))) close_file();
  return file_;
}

bool Room::open(int32_t pid, int file) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(file);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return false;
  const bool mapped = map(opened);
  close(opened);
  return mapped;
}

void Room::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

bool Room::suits(uint64_t bytes) const { return bytes <= kMost && bytes * static_cast<uint64_t>(ranks_) <= kOfAll; }

uint64_t Room::begin(const RoomSum& sum) {
  const uint64_t number = ++begun_;
  post(sum, number);
  return number;
}

// Whether all have read what was in the place before, this rank among them.
bool Room::has_place(uint64_t number) {
  if (done_ + kPlaces < number) return false;
  for (int r = 0; r < ranks_; r++) {
    uint64_t& seen = seen_[static_cast<size_t>(r)];
    if (seen + kPlaces >= number || r == rank_) continue;
    seen = all_[r].done.load(std::memory_order_acquire);
    if (seen + kPlaces < number) return false;
  }
  return true;
}

void Room::post(const RoomSum& sum, uint64_t number) {
  if (posted_ + 1 != number || !has_place(number)) return;
  Place& mine = place(rank_, number);
  mine.count = static_cast<uint64_t>(sum.count);
  mine.about = sum.about;
  if (sum.count > 0) std::memcpy(mine.bytes, sum.in, static_cast<uint64_t>(sum.count) * sum.item);
  mine.number.store(number, std::memory_order_release);
  posted_ = number;
}

bool Room::advance(const RoomSum& sum, uint64_t number) {
  if (posted_ < number) post(sum, number);
  if (posted_ < number || done_ + 1 != number) return false;
  for (int r = 0; r < ranks_; r++) {
    const Place& theirs = place(r, number);
    if (theirs.number.load(std::memory_order_acquire) != number) return pause(), false;
    if (theirs.count != static_cast<uint64_t>(sum.count) || theirs.about != sum.about) return false;
  }
  add_all(sum, number);
  done_ = number;
  all_[rank_].done.store(number, std::memory_order_release);
  return true;
}

std::string Room::difference(const RoomSum& sum, uint64_t number, const std::vector<int>& ranks) const {
  if (posted_ < number || done_ + 1 != number) return "";
  auto text = [](uint64_t count, uint64_t about) {
    const char* kinds[] = {"sum", "mean", "largest", "smallest"};
    return pg::format("%s of %llu of %s", kinds[about % 4], static_cast<unsigned long long>(count),
                      pg::dtype_name(static_cast<uint32_t>(about / 4)));
  };
  const uint64_t count = static_cast<uint64_t>(sum.count);
  for (int r = 0; r < ranks_; r++) {
    const Place& theirs = place(r, number);
    if (theirs.number.load(std::memory_order_acquire) != number) continue;
    if (theirs.count == count && theirs.about == sum.about) continue;
    return pg::format("rank %d is at the ", ranks[static_cast<size_t>(r)]) + text(theirs.count, theirs.about) +
           "; this rank at the " + text(count, sum.about);
  }
  return "";
}

// Ranks by powers of two, each of which joins what it has with one that is farther away each time; those too many for
// a power of two first give theirs to a neighbour. `Sum` adds in the same order.
struct Room::Tree {
  const Room& room;
  const RoomSum& sum;
  uint64_t number;
  int extra;

  const void* given(int rank) const { return room.place(rank, number).bytes; }
  // The sum of some neighbours; where it has to be computed, in `into`. `level`: room for others.
  const void* add(int first, int count, void* into, char* level) const {
    if (count == 1) {
      if (first >= extra) return given(first + extra);
      sum.combine(given(2 * first), given(2 * first + 1), into, static_cast<uint64_t>(sum.count));
      return into;
    }
    const void* lower = add(first, count / 2, into, level);
    const void* upper = add(first + count / 2, count / 2, level, level + kMost);
    sum.combine(lower, upper, into, static_cast<uint64_t>(sum.count));
    return into;
  }
};

void Room::add_all(const RoomSum& sum, uint64_t number) {
  if (ranks_ == 2) {
    const void* theirs = place(1 - rank_, number).bytes;
    sum.combine(rank_ == 0 ? sum.in : theirs, rank_ == 0 ? theirs : sum.in, sum.out, static_cast<uint64_t>(sum.count));
    return;
  }
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks_)));
  const int deep = std::bit_width(static_cast<unsigned>(power));
  levels_.resize(static_cast<size_t>(deep) * kMost);
  Tree{*this, sum, number, ranks_ - power}.add(0, power, sum.out, levels_.data());
}

}  // namespace mpi
