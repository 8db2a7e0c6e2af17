// SPDX-License-Identifier: Apache-2.0
// A communicator of the stand-in, and the calls of one group of NCCL's on it.
#pragma once

#include <nccl.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "room.hpp"

namespace standin {

enum class Kind : int { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };

struct NcclCall {
  Kind kind;
  const void* input;
  void* output;
  size_t count;
  ncclDataType_t type;
  int op, peer;  // peer: the root, too
  cudaStream_t stream;
};

size_t bytes_of(ncclDataType_t type);

// What streams hold on to: it outlives the handle.
struct Rank {
  Rank(const std::string& id, int rank, int size, int device);
  // On a stream: all calls of a group at once, as one kernel. What they read is laid down before anything is written.
  void run(const std::vector<NcclCall>& calls);
  std::string key(const char* what, int rank, uint64_t number = 0) const;

  const Room room;
  const int rank, size, device;
  std::atomic<bool> aborted{false};
  std::atomic<int> async{ncclSuccess};

 private:
  void wait_for(const std::string& name, std::vector<char>& bytes);
  void run_collectives(const std::vector<NcclCall>& calls);

  uint64_t batches_ = 0;  // of collectives
  std::map<int, uint64_t> sent_, received_;
};

// Reduces what `size` ranks gave, in the order of ranks.
void reduce(ncclDataType_t type, int op, const std::vector<const char*>& inputs, size_t count, char* output);

}  // namespace standin

struct ncclComm {
  std::shared_ptr<standin::Rank> rank;
  bool ready = false, finalized = false, gone = false;
  int busy = 0;                                // answers "in progress" so often before it takes what it was given
  std::vector<standin::NcclCall> group, next;  // of the group that is open; given, but not queued
};
