// SPDX-License-Identifier: Apache-2.0
#include "pair.hpp"

#include <cstring>

#include "sums.hpp"

namespace mpi {
namespace {

template <class T>
void add(const void* lower, const void* upper, void* out, int count) {
  const T* __restrict a = static_cast<const T*>(lower), * __restrict b = static_cast<const T*>(upper);
  T* __restrict y = static_cast<T*>(out);
  for (int i = 0; i < count; i++) y[i] = a[i] + b[i];
}

// out = lower (op) upper, of which one is `theirs`, whose contents are not needed any more.
int combine(const SumCall& call, char* theirs) {
  const bool first = call.rank == 0;
  if (call.reduction.op == MPI_SUM && call.reduction.type == MPI_FLOAT && call.in != call.out) {
    add<float>(first ? call.in : theirs, first ? theirs : call.in, call.out, call.count);
    return MPI_SUCCESS;
  }
  const size_t bytes = static_cast<size_t>(call.count) * call.item;
  if (!first) {
    if (call.in != call.out) std::memcpy(call.out, call.in, bytes);
    return MPI_Reduce_local(theirs, call.out, call.count, call.reduction.type, call.reduction.op);
  }
  const int code = MPI_Reduce_local(call.in, theirs, call.count, call.reduction.type, call.reduction.op);
  std::memcpy(call.out, theirs, bytes);
  return code;
}

}  // namespace

int Pair::make(const SumCall& call) {
  free();
  const size_t bytes = static_cast<size_t>(call.count) * call.item;
  mine_.resize(bytes);
  theirs_.resize(bytes);
  count_ = call.count;
  type_ = call.reduction.type;
  const int code = MPI_Send_init(mine_.data(), count_, type_, 1 - call.rank, kTag, call.comm, &handles_[0]);
  if (code != MPI_SUCCESS) return code;
  return MPI_Recv_init(theirs_.data(), count_, type_, 1 - call.rank, kTag, call.comm, &handles_[1]);
}

bool Pair::begin(const SumCall& call, int& code) {
  const bool again = last_count_ == call.count && last_type_ == call.reduction.type;
  last_count_ = call.count;
  last_type_ = call.reduction.type;
  if (busy_ || !again) return false;
  if (count_ != call.count || type_ != call.reduction.type) code = make(call);
  if (code != MPI_SUCCESS) return false;
  std::memcpy(mine_.data(), call.in, mine_.size());
  busy_ = true;
  code = MPI_Start(&handles_[0]);  // what the other waits for leaves first
  if (code == MPI_SUCCESS) code = MPI_Start(&handles_[1]);
  return true;
}

bool Pair::advance(const SumCall& call, int& code) {
  int over = 0;
  code = MPI_Testall(2, handles_, &over, MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS || over == 0) return false;
  busy_ = false;
  code = combine(call, theirs_.data());
  return code == MPI_SUCCESS;
}

void Pair::free() {
  if (busy_) return;
  for (MPI_Request& handle : handles_)
    if (handle != MPI_REQUEST_NULL) MPI_Request_free(&handle);
  count_ = 0;
}

}  // namespace mpi
