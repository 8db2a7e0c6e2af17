// SPDX-License-Identifier: Apache-2.0
// Groups of processes, and calls that all of them make.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace perigee {

// This process among those that were launched together. Joins them when it is first asked for; one alone, without an
// engine, where no engine knows of others.
struct World {
  uint32_t rank = 0, size = 1, local_rank = 0, local_size = 1;
  std::string engine;
};
const World& world();

constexpr int64_t kWorldGroup = 1;

// Lives until shutdown.
struct Group {
  int64_t number;              // as attributes of operators name it; never 0
  std::vector<int32_t> ranks;  // of the world
  int32_t rank;                // this process's, in the group
  uint64_t handle;             // the engine's
  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
};
Group& find_group(int64_t number);  // throws PG_E_INVALID_ARGUMENT; the world's is made when it is first asked for
// Called by all of the given ranks, which rise, and returns when all have.
int64_t create_group(const std::vector<int32_t>& ranks);

// Seconds that a call may take; 0: any time. 1800 at first.
double set_deadline(double seconds);
double deadline();

// What one rank asks for; dense elements at `input` and `output`, where there are any.
struct Collective {
  uint32_t kind, reduction = PG_REDUCE_SUM, dtype = PG_U8;
  int32_t peer = -1, tag = 0;
  uint64_t count = 0;
  pg_address input{0, 0}, output{0, 0};
  uint64_t input_bytes = 0, output_bytes = 0;
  const char* what = nullptr;  // for messages
};
// Returns when the output has arrived. The device's stream has passed what was written to the input.
void run_collective(Group& group, Device& device, uint32_t stream, const Collective& call);
void run_on_host(Group& group, const Collective& call);  // the same on host memory
// It begins on host memory, which is the engine's until the request is over: once finish has returned or failed, or a
// look, which does not wait, has answered true.
uint64_t begin_collective(Group& group, const Collective& call);
bool look_at_collective(Group& group, uint64_t request);
void finish_collective(Group& group, uint64_t request);
void barrier(Group& group);

// From now on every rank says what it is about to call ("all_reduce sum of float32 [2, 3] at train.lua:12"), and all
// fail where ranks do not agree. What stands behind " at " is shown, but need not agree.
void set_agreement(bool on);
bool wants_agreement();
void agree(Group& group, const std::string& call);

// `bytes` of every rank in the order of ranks, by the engine of host memory.
void gather_bytes(Group& group, const void* mine, uint64_t bytes, void* all, const char* what);
// Which ranks of the group have ended, "rank 1", as far as that is known without waiting; "" for none. [any thread]
std::string find_ended(Group& group);
// PG_PEER_* by rank of the group.
std::vector<uint32_t> peer_states(Group& group);
// This process makes no further calls: those that wait for it are told why.
void abandon_groups(const char* reason) noexcept;
// Before plugins are closed.
void close_groups() noexcept;

}  // namespace perigee
