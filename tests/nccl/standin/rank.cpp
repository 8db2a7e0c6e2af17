// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "../../cuda/standin/state.hpp"
#include "comm.hpp"

namespace standin {
namespace {

struct Aborted {};

struct Header {
  int kind, type, op, root;
  uint64_t count;
  bool operator==(const Header&) const = default;
};

Header header_of(const NcclCall& call) {
  const bool rooted = call.kind == Kind::kReduce || call.kind == Kind::kBroadcast;
  return {static_cast<int>(call.kind), call.type, call.op, rooted ? call.peer : 0, call.count};
}

size_t input_bytes(const NcclCall& call, int rank, int size) {
  const size_t bytes = call.count * bytes_of(call.type);
  if (call.kind == Kind::kReduceScatter) return bytes * static_cast<size_t>(size);
  if (call.kind == Kind::kRecv || (call.kind == Kind::kBroadcast && call.peer != rank)) return 0;
  return bytes;
}

size_t output_bytes(const NcclCall& call, int rank, int size) {
  const size_t bytes = call.count * bytes_of(call.type);
  if (call.kind == Kind::kAllGather) return bytes * static_cast<size_t>(size);
  if (call.kind == Kind::kSend || (call.kind == Kind::kReduce && call.peer != rank)) return 0;
  return bytes;
}

void append(std::vector<char>& to, const void* from, size_t bytes) {
  const auto* begin = static_cast<const char*>(from);
  if (bytes > 0) to.insert(to.end(), begin, begin + bytes);
}

// Memory of the communicator's device, or the process ends.
void check_range(const void* address, size_t bytes, int device, const char* what) {
  if (bytes == 0) return;
  const Block* block = find_block(address, bytes);
  if (block == nullptr || block->device != device)
    mistake(std::string("NCCL: ") + what + " is not memory of its device");
}

bool is_pair(const NcclCall& call) { return call.kind == Kind::kSend || call.kind == Kind::kRecv; }

}  // namespace

Rank::Rank(const std::string& id, int rank, int size, int device) : room(id), rank(rank), size(size), device(device) {
  room.put(key("here", rank), {});
}

std::string Rank::key(const char* what, int of, uint64_t number) const {
  return std::string(what) + "-" + std::to_string(number) + "-" + std::to_string(of);
}

// As a kernel does: until it is there, or the communicator is aborted.
void Rank::wait_for(const std::string& name, std::vector<char>& bytes) {
  for (int turn = 0; !room.get(name, bytes); turn++) {
    if (aborted) throw Aborted();
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 100 ? 50 : 500));
  }
}

void Rank::run(const std::vector<NcclCall>& calls) {
  for (const NcclCall& call : calls) {
    check_range(call.input, input_bytes(call, rank, size), device, "the input");
    check_range(call.output, output_bytes(call, rank, size), device, "the output");
  }
  try {
    if (injected("ncclRemote") != cudaSuccess) {  // another rank's network is gone, and the kernel waits for it
      async = ncclRemoteError;
      while (!aborted) std::this_thread::sleep_for(std::chrono::microseconds(200));
      throw Aborted();
    }
    if (injected("ncclHang") != cudaSuccess)  // nobody knows why
      while (!aborted) std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (const NcclCall& call : calls) {
      if (call.kind != Kind::kSend) continue;
      std::vector<char> bytes;
      const Header header = header_of(call);
      append(bytes, &header, sizeof header);
      append(bytes, call.input, call.count * bytes_of(call.type));
      room.put("pair-" + std::to_string(call.peer) + "-" + key("from", rank, sent_[call.peer]++), bytes);
    }
    run_collectives(calls);
    for (const NcclCall& call : calls) {
      if (call.kind != Kind::kRecv) continue;
      std::vector<char> bytes;
      const std::string name = "pair-" + std::to_string(rank) + "-" + key("from", call.peer, received_[call.peer]++);
      wait_for(name, bytes);
      room.remove(name);
      if (bytes.size() != sizeof(Header) + call.count * bytes_of(call.type))
        mistake("NCCL: a receive of another length than its send");
      std::copy(bytes.begin() + sizeof(Header), bytes.end(), static_cast<char*>(call.output));
    }
  } catch (const Aborted&) {
    // Whatever had been written by then: nobody may use it.
    for (const NcclCall& call : calls)
      if (const size_t bytes = output_bytes(call, rank, size); bytes > 0) std::memset(call.output, 0xff, bytes);
  }
}

void Rank::run_collectives(const std::vector<NcclCall>& calls) {
  std::vector<NcclCall> list;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(list), [](const NcclCall& c) { return !is_pair(c); });
  if (list.empty()) return;
  const uint64_t batch = batches_++;
  std::vector<char> mine;
  for (const NcclCall& call : list) {
    const Header header = header_of(call);
    append(mine, &header, sizeof header);
    append(mine, call.input, input_bytes(call, rank, size));
  }
  room.put(key("batch", rank, batch), mine);
  std::vector<std::vector<char>> all(static_cast<size_t>(size));
  for (int k = 0; k < size; k++) wait_for(key("batch", k, batch), all[static_cast<size_t>(k)]);
  // Who has come to this one has read the one before.
  if (batch > 0) room.remove(key("batch", rank, batch - 1));
  std::vector<size_t> at(static_cast<size_t>(size), 0);
  for (const NcclCall& call : list) {
    const Header header = header_of(call);
    std::vector<const char*> inputs;
    for (int k = 0; k < size; k++) {
      const auto i = static_cast<size_t>(k);
      Header other{};
      if (all[i].size() < at[i] + sizeof other) mistake("NCCL: ranks make other groups of calls");
      std::memcpy(&other, all[i].data() + at[i], sizeof other);
      if (!(other == header)) mistake("NCCL: ranks make other calls");
      inputs.push_back(all[i].data() + at[i] + sizeof other);
      at[i] += sizeof other + input_bytes(call, k, size);
    }
    const size_t bytes = call.count * bytes_of(call.type);
    auto* out = static_cast<char*>(call.output);
    switch (call.kind) {
      case Kind::kReduce:
        if (call.peer != rank) break;
        [[fallthrough]];
      case Kind::kAllReduce: reduce(call.type, call.op, inputs, call.count, out); break;
      case Kind::kBroadcast:
        if (bytes > 0) std::memcpy(out, inputs[static_cast<size_t>(call.peer)], bytes);
        break;
      case Kind::kAllGather:
        for (size_t k = 0; k < inputs.size() && bytes > 0; k++) std::memcpy(out + k * bytes, inputs[k], bytes);
        break;
      case Kind::kReduceScatter:
        for (const char*& input : inputs) input += static_cast<size_t>(rank) * bytes;
        reduce(call.type, call.op, inputs, call.count, out);
        break;
      default: break;
    }
  }
}

}  // namespace standin
