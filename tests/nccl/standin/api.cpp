// SPDX-License-Identifier: Apache-2.0
// NCCL's functions, by its own header: communicators that do not block, and groups of calls.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "../../cuda/standin/state.hpp"
#include "comm.hpp"

using standin::Kind;
using standin::mistake;
using standin::NcclCall;

namespace {

struct Library {
  std::mutex mutex;
  std::set<ncclComm*> comms;  // alive
};
Library& library() {
  static auto& library = *new Library;
  return library;
}

thread_local int depth = 0;                    // of groups that are open
thread_local std::vector<ncclComm*> in_group;  // what they have calls for

ncclComm* find(ncclComm_t comm) {
  std::lock_guard lock(library().mutex);
  if (library().comms.count(comm) == 0) mistake("NCCL: a communicator that is no more");
  return comm;
}

ncclResult_t entered(const char* name) {
  return standin::enter(name) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
#define NCCL_ENTER() \
  if (const ncclResult_t refused_ = entered(__func__); refused_ != ncclSuccess) return refused_

// Onto the stream, of the communicator's device, whichever is current.
ncclResult_t queue(ncclComm* comm) {
  std::vector<NcclCall> calls;
  calls.swap(comm->next);
  if (calls.empty()) return ncclSuccess;
  for (const NcclCall& call : calls)
    if (call.stream != calls[0].stream) mistake("NCCL: calls of a group on several streams");
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(comm->rank->device);
  const cudaError_t status =
      standin::enqueue(calls[0].stream, "nccl", [rank = comm->rank, calls] { rank->run(calls); });
  cudaSetDevice(before);
  return status == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t take(ncclComm_t handle, NcclCall call) {
  ncclComm* comm = find(handle);
  if (!comm->ready) mistake("NCCL: a communicator is used before it is ready");
  if (comm->finalized) mistake("NCCL: a communicator is used after ncclCommFinalize");
  if (comm->busy > 0) mistake("NCCL: a communicator is used while it is in progress");
  if (depth == 0) mistake("NCCL: a call outside of a group");
  const bool named = call.kind == Kind::kReduce || call.kind == Kind::kBroadcast || call.kind == Kind::kSend ||
                     call.kind == Kind::kRecv;
  if (named && (call.peer < 0 || call.peer >= comm->rank->size)) return ncclInvalidArgument;
  comm->group.push_back(call);
  if (std::find(in_group.begin(), in_group.end(), comm) == in_group.end()) in_group.push_back(comm);
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "another error";
  }
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  NCCL_ENTER();
  unsigned char bytes[12] = {};
  const int random = open("/dev/urandom", O_RDONLY);
  if (random < 0 || read(random, bytes, sizeof bytes) != sizeof bytes) return ncclSystemError;
  close(random);
  std::memset(id, 0, sizeof *id);
  for (size_t i = 0; i < sizeof bytes; i++) std::snprintf(id->internal + 2 * i, 3, "%02x", bytes[i]);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  NCCL_ENTER();
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0)
    mistake("NCCL: a configuration that was not initialised, or one that blocks");
  if (rank < 0 || rank >= size) return ncclInvalidArgument;
  auto* comm = new ncclComm;
  comm->rank = std::make_shared<standin::Rank>(id.internal, rank, size, standin::thread_state().device);
  std::lock_guard lock(library().mutex);
  library().comms.insert(comm);
  *out = comm;
  return ncclInProgress;
}

// What is in progress goes on here.
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* out) {
  ncclComm* comm = find(handle);
  standin::Rank& rank = *comm->rank;
  *out = static_cast<ncclResult_t>(rank.async.load());
  if (*out != ncclSuccess) return ncclSuccess;
  const auto all = [&](const char* what) {
    for (int k = 0; k < rank.size; k++)
      if (!rank.room.has(rank.key(what, k))) return false;
    return true;
  };
  if (!comm->ready) comm->ready = all("here");
  if (!comm->ready) *out = ncclInProgress;
  if (comm->busy > 0) {
    *out = --comm->busy > 0 ? ncclInProgress : queue(comm);
    if (*out != ncclSuccess && *out != ncclInProgress) rank.async = *out;
  }
  if (comm->finalized && !all("bye") && rank.room.exists()) *out = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  NCCL_ENTER();
  ncclComm* comm = find(handle);
  comm->finalized = true;
  comm->rank->room.put(comm->rank->key("bye", comm->rank->rank), {});
  return ncclInProgress;
}

static ncclResult_t destroy(ncclComm_t handle, bool abort) {
  ncclComm* comm = find(handle);
  standin::Rank& rank = *comm->rank;
  if (abort) rank.aborted = true;
  if (!abort && !comm->finalized) mistake("NCCL: ncclCommDestroy without ncclCommFinalize");
  rank.room.put(rank.key("gone", rank.rank), {});
  bool last = true;
  for (int k = 0; k < rank.size; k++) last = last && rank.room.has(rank.key("gone", k));
  if (last) rank.room.clear();
  std::lock_guard lock(library().mutex);
  library().comms.erase(comm);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  NCCL_ENTER();
  return destroy(comm, false);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return destroy(comm, true); }

ncclResult_t ncclGroupStart() {
  NCCL_ENTER();
  depth++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (depth == 0) mistake("NCCL: ncclGroupEnd without ncclGroupStart");
  if (--depth > 0) return ncclSuccess;
  for (ncclComm* comm : in_group) {
    comm->next.swap(comm->group);
    comm->group.clear();
    comm->busy = 3;
  }
  const bool any = !in_group.empty();
  in_group.clear();
  return any ? ncclInProgress : ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kAllReduce, input, output, count, type, op, 0, stream});
}
ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kReduce, input, output, count, type, op, root, stream});
}
ncclResult_t ncclBroadcast(const void* input, void* output, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kBroadcast, input, output, count, type, 0, root, stream});
}
ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kAllGather, input, output, count, type, 0, 0, stream});
}
ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kReduceScatter, input, output, count, type, op, 0, stream});
}
ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kSend, input, nullptr, count, type, 0, peer, stream});
}
ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  NCCL_ENTER();
  return take(comm, {Kind::kRecv, nullptr, output, count, type, 0, peer, stream});
}
