// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a block. A fiber runs one thread after the other until one has to wait; then another fiber takes
// the rest. So a kernel without barriers runs straight through on one fiber.
#include "scheduler.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <vector>

#include "emulator.hpp"
#include "fiber.hpp"
#include "order.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulator {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kLanes = 32;

struct Thread {
  Fiber* fiber = nullptr;
  uint64_t result = 0;
  Site site;  // where it waits
};

// What lanes of a warp are gathering for.
struct Gathering {
  LaneRequest first;
  Site site;
  uint32_t arrived = 0;
  std::array<uint64_t, kLanes> value;
  std::array<int32_t, kLanes> operand;
};

struct Warp {
  uint32_t left = 0;  // lanes that are not, or no longer, in the kernel
  std::vector<Gathering> gatherings;
};

void fiber_entry();

// One kernel at a time: its state is here, and its shared arrays are static.
struct Running {
  std::mutex one;
  Order order;
  const std::function<void()>* body = nullptr;
  uint32_t threads = 0, begun = 0, left = 0, current = 0;
  std::array<Thread, kMaxThreads> thread;
  std::array<Warp, kMaxThreads / kLanes> warp;
  std::vector<uint32_t> sequence, ready;
  size_t next_ready = 0;
  Fiber outside;
  Fiber* fiber = nullptr;
  std::vector<Fiber*> idle;
  uint32_t waiting = 0;  // at the block's barrier
  Vote vote = Vote::kNone;
  int tally = 0;
  Site site;
  std::unique_ptr<char[]> dynamic;
};
Running& running() {
  static auto* state = new Running();  // fibers never end
  return *state;
}

std::string text(const Site& site) {
  return std::string(site.function_name()) + " (" + site.file_name() + ":" + std::to_string(site.line()) + ")";
}
bool same(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}
std::string here() {
  return "block (" + std::to_string(blockIdx.x) + ", " + std::to_string(blockIdx.y) + ", " +
         std::to_string(blockIdx.z) + ") of " + std::to_string(running().threads) + " threads";
}

[[noreturn]] void deadlock(Running& r) {
  std::string message = "threads of " + here() + " wait for each other for ever";
  int told = 0;
  for (uint32_t t = 0; t < r.threads && told < 4; t++) {
    if (r.thread[t].site.line() == 0) continue;
    message += "; thread " + std::to_string(t) + " in " + text(r.thread[t].site);
    told++;
  }
  violation(message);
}

// The fiber that goes on, now that this one cannot.
Fiber& next_fiber(Running& r) {
  if (r.next_ready < r.ready.size()) {
    r.current = r.ready[r.next_ready++];
    r.fiber = r.thread[r.current].fiber;
  } else if (r.begun < r.threads) {
    if (r.idle.empty()) r.idle.push_back(new Fiber(fiber_entry));
    r.fiber = r.idle.back();
    r.idle.pop_back();
  } else if (r.left == r.threads) {
    return r.outside;
  } else {
    deadlock(r);
  }
  return *r.fiber;
}

void suspend(Running& r, const Site& site) {
  Thread& me = r.thread[r.current];
  uint32_t index = r.current;
  Fiber* mine = r.fiber;
  me.site = site;
  Fiber& next = next_fiber(r);
  if (&next != mine) next.switch_from(*mine);
  me.site = Site();
  r.current = index;
  threadIdx.x = index;
}

// Threads become ready together, in the chosen order.
void wake(Running& r, uint32_t* begin, uint32_t* end) {
  if (r.next_ready == r.ready.size()) r.ready.clear(), r.next_ready = 0;
  r.order.arrange(begin, end);
  r.ready.insert(r.ready.end(), begin, end);
}

uint64_t lane_result(const Gathering& g, int lane) {
  constexpr uint64_t kNothing = ~uint64_t{0};
  auto read = [&](int from) { return (g.arrived >> from & 1u) != 0 ? g.value[static_cast<size_t>(from)] : kNothing; };
  int width = g.first.width, begin = lane & ~(width - 1), operand = g.operand[static_cast<size_t>(lane)];
  uint32_t votes = 0;
  for (uint32_t i = 0; i < kLanes; i++) votes |= (g.arrived >> i & 1u) != 0 && g.value[i] != 0 ? 1u << i : 0u;
  switch (g.first.kind) {
    case Exchange::kSync: return 0;
    case Exchange::kShuffle: return read(begin + (operand & (width - 1)));
    case Exchange::kShuffleUp: return read(lane - operand < begin ? lane : lane - operand);
    case Exchange::kShuffleDown: return read(lane + operand >= begin + width ? lane : lane + operand);
    case Exchange::kShuffleXor: return read((lane ^ operand) >= begin + width ? lane : lane ^ operand);
    case Exchange::kBallot: return votes;
    case Exchange::kAny: return votes != 0;
    case Exchange::kAll: return votes == g.arrived;
  }
  return 0;
}

// Whether all lanes that are still there have come; then they are woken, but for the calling thread.
bool complete(Running& r, uint32_t warp, size_t at, uint32_t except) {
  Warp& w = r.warp[warp];
  Gathering& g = w.gatherings[at];
  if ((g.first.mask & ~w.left) != g.arrived) return false;
  uint32_t woken[kLanes], count = 0;
  for (uint32_t lane = 0; lane < kLanes; lane++) {
    if ((g.arrived >> lane & 1u) == 0) continue;
    uint32_t t = warp * kLanes + lane;
    r.thread[t].result = lane_result(g, static_cast<int>(lane));
    if (t != except) woken[count++] = t;
  }
  wake(r, woken, woken + count);
  w.gatherings.erase(w.gatherings.begin() + static_cast<ptrdiff_t>(at));
  return true;
}

void leave(Running& r) {
  uint32_t warp = r.current / kLanes;
  if (r.waiting > 0) {
    violation("thread " + std::to_string(r.current) + " of " + here() + " has left the kernel while others wait in " +
              text(r.site));
  }
  r.left++;
  Warp& w = r.warp[warp];
  w.left |= 1u << (r.current % kLanes);
  for (size_t i = 0; i < w.gatherings.size();) i += complete(r, warp, i, kMaxThreads) ? 0 : 1;
}

void fiber_entry() {
  Fiber::entered();
  Running& r = running();
  for (;;) {
    Fiber* mine = r.fiber;
    while (r.begun < r.threads && r.next_ready == r.ready.size()) {
      r.current = r.sequence[r.begun++];
      r.thread[r.current].fiber = mine;
      threadIdx.x = r.current;
      (*r.body)();
      leave(r);
    }
    r.idle.push_back(mine);
    Fiber& next = next_fiber(r);
    if (&next != mine) next.switch_from(*mine);
  }
}

void run_block(Running& r, const Geometry& geometry) {
  r.begun = r.left = r.waiting = 0;
  for (uint32_t w = 0; w * kLanes < r.threads; w++) {
    uint32_t there = r.threads - w * kLanes;
    r.warp[w].left = there >= kLanes ? 0u : ~0u << there;
  }
  if (!r.order.forward()) r.order.arrange(r.sequence.data(), r.sequence.data() + r.threads);
  if (geometry.shared > 0) std::memset(r.dynamic.get(), 0xff, geometry.shared);
  next_fiber(r).switch_from(r.outside);
}

std::string order_from_environment() {
  const char* value = std::getenv("PERIGEE_STANDIN_ORDER");
  return value == nullptr ? "" : value;
}

}  // namespace

void run_kernel(const Geometry& geometry, const std::function<void()>& body) {
  Running& r = running();
  std::lock_guard lock(r.one);
  r.order = Order(order_from_environment());
  r.body = &body;
  r.threads = geometry.threads;
  r.sequence.resize(r.threads);
  std::iota(r.sequence.begin(), r.sequence.end(), 0u);
  r.dynamic = std::make_unique<char[]>(geometry.shared);
  gridDim = dim3(geometry.x, geometry.y, geometry.z);
  blockDim = dim3(geometry.threads);
  threadIdx = uint3{0, 0, 0};
  uint64_t count = uint64_t{geometry.x} * geometry.y * geometry.z, block, step;
  r.order.steps(count, block, step);
  for (uint64_t i = 0; i < count; i++, block = (block + step) % count) {
    blockIdx.x = static_cast<uint32_t>(block % geometry.x);
    blockIdx.y = static_cast<uint32_t>(block / geometry.x % geometry.y);
    blockIdx.z = static_cast<uint32_t>(block / geometry.x / geometry.y);
    run_block(r, geometry);
  }
}

void violation(const std::string& message) {
  std::fprintf(stderr, "cuda emulator: %s\n", message.c_str());
  std::abort();
}

void* dynamic_shared_memory() { return running().dynamic.get(); }

uint32_t active_lanes() {
  Running& r = running();
  return ~r.warp[r.current / kLanes].left;
}

int sync_block(Vote vote, int predicate, Site site) {
  Running& r = running();
  if (r.left > 0) {
    violation("thread " + std::to_string(r.current) + " of " + here() + " waits in " + text(site) +
              " for threads that have left the kernel");
  }
  if (r.waiting == 0) {
    r.vote = vote, r.tally = 0, r.site = site;
  } else if (!same(r.site, site) || r.vote != vote) {
    violation("threads of " + here() + " wait at different barriers: one in " + text(r.site) + ", thread " +
              std::to_string(r.current) + " in " + text(site));
  }
  r.tally += predicate != 0;
  if (++r.waiting < r.threads) {
    uint32_t me = r.current;
    suspend(r, site);
    return static_cast<int>(r.thread[me].result);
  }
  int count = r.tally, all = static_cast<int>(r.threads);
  int result = vote == Vote::kCount ? count : vote == Vote::kAnd ? count == all : count > 0;
  uint32_t woken[kMaxThreads], others = 0;
  for (uint32_t t = 0; t < r.threads; t++) {
    r.thread[t].result = static_cast<uint64_t>(result);
    if (t != r.current) woken[others++] = t;
  }
  r.waiting = 0;
  wake(r, woken, woken + others);
  return result;
}

uint64_t exchange(const LaneRequest& request, Site site) {
  Running& r = running();
  uint32_t me = r.current, warp = me / kLanes, lane = me % kLanes;
  if ((request.mask >> lane & 1u) == 0) {
    violation("lane " + std::to_string(lane) + " is not in the mask that it gives in " + text(site));
  }
  std::vector<Gathering>& gatherings = r.warp[warp].gatherings;
  size_t at = 0;
  while (at < gatherings.size() && (gatherings[at].first.mask & request.mask) == 0) at++;
  if (at == gatherings.size()) {
    gatherings.emplace_back().first = request;
    gatherings[at].site = site;
  }
  Gathering& g = gatherings[at];
  if (g.first.mask != request.mask || g.first.kind != request.kind || !same(g.site, site)) {
    violation("lanes of warp " + std::to_string(warp) + " of " + here() + " have parted: one waits in " + text(g.site) +
              ", lane " + std::to_string(lane) + " in " + text(site));
  }
  g.arrived |= 1u << lane;
  g.value[lane] = request.value;
  g.operand[lane] = request.operand;
  if (!complete(r, warp, at, me)) suspend(r, site);
  return r.thread[me].result;
}

}  // namespace emulator
