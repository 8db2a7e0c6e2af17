// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

namespace nccl {
namespace {

// What numbers are computed in. NCCL has no integers of 16 bits.
bool find_type(uint32_t dtype, ncclDataType_t& type) {
  switch (dtype) {
    case PG_I8: type = ncclInt8; return true;
    case PG_U8: type = ncclUint8; return true;
    case PG_I32: type = ncclInt32; return true;
    case PG_I64: type = ncclInt64; return true;
    case PG_F16: type = ncclFloat16; return true;
    case PG_BF16: type = ncclBfloat16; return true;
    case PG_F32: type = ncclFloat32; return true;
    case PG_F64: type = ncclFloat64; return true;
    default: return false;
  }
}

const char* const kReductions[] = {"sum", "mean", "max", "min"};

ncclRedOp_t operation(uint32_t reduction) {
  switch (reduction) {
    case PG_REDUCE_MEAN: return ncclAvg;
    case PG_REDUCE_MAX: return ncclMax;
    case PG_REDUCE_MIN: return ncclMin;
    default: return ncclSum;
  }
}

}  // namespace

void refuse_unknown(const pg_collective& call, size_t members) {
  if (pg::is_reduction(call.kind)) {
    ncclDataType_t type;
    if (!find_type(call.dtype, type))
      pg::fail_support(pg::format("NCCL does not reduce %s", pg::dtype_name(call.dtype)));
    // fmaxf and its like, which return the other number.
    const bool picks = call.reduction == PG_REDUCE_MAX || call.reduction == PG_REDUCE_MIN;
    if (picks && (pg::dtype_class(call.dtype) & PG_M_FLOAT))
      pg::fail_support(
          pg::format("the %s of %s: NCCL's passes NaN over", kReductions[call.reduction], pg::dtype_name(call.dtype)));
  }
  const bool moves = call.kind == PG_COLLECTIVE_ALL_GATHER || call.kind == PG_COLLECTIVE_REDUCE_SCATTER ||
                     call.kind == PG_COLLECTIVE_ALL_TO_ALL;
  const bool in_place = call.input.buffer == call.output.buffer && call.input.offset == call.output.offset;
  if (moves && in_place && call.count > 0 && members > 1)
    pg::fail_support(pg::format("%s on its own input", call.what != nullptr ? call.what : "a collective"));
  if (pg::is_pair(call.kind) && call.tag != 0)
    pg::fail_support(pg::format("tag %d: NCCL's sends and receives have none", call.tag));
}

void begin_call(const pg_collective& call, ncclComm_t comm, cudaStream_t stream, size_t member, size_t members,
                const void* input, void* output, void* spare) {
  const Library& l = library();
  const size_t bytes = call.count * static_cast<size_t>(pg::dtype_bytes(call.dtype));
  ncclDataType_t type = ncclUint8;
  const bool computes = pg::is_reduction(call.kind);
  if (computes) find_type(call.dtype, type);
  const size_t count = computes ? call.count : bytes;
  const ncclRedOp_t op = operation(call.reduction);
  switch (call.kind) {
    case PG_COLLECTIVE_BARRIER:
      return check(l.ncclAllReduce(spare, spare, 1, ncclInt32, ncclSum, comm, stream), "ncclAllReduce");
    case PG_COLLECTIVE_ALL_REDUCE:
      return check(l.ncclAllReduce(input, output, count, type, op, comm, stream), "ncclAllReduce");
    case PG_COLLECTIVE_REDUCE:
      return check(l.ncclReduce(input, output, count, type, op, call.peer, comm, stream), "ncclReduce");
    case PG_COLLECTIVE_BROADCAST: {
      // The root's output is not written.
      const bool root = static_cast<size_t>(call.peer) == member;
      return check(l.ncclBroadcast(root ? input : output, root ? const_cast<void*>(input) : output, count, type,
                                   call.peer, comm, stream),
                   "ncclBroadcast");
    }
    case PG_COLLECTIVE_ALL_GATHER:
      return check(l.ncclAllGather(input, output, count, type, comm, stream), "ncclAllGather");
    case PG_COLLECTIVE_REDUCE_SCATTER:
      return check(l.ncclReduceScatter(input, output, count, type, op, comm, stream), "ncclReduceScatter");
    case PG_COLLECTIVE_ALL_TO_ALL:
      for (size_t k = 0; k < members; k++) {
        const auto peer = static_cast<int>(k);
        check(l.ncclSend(static_cast<const char*>(input) + k * bytes, bytes, type, peer, comm, stream), "ncclSend");
        check(l.ncclRecv(static_cast<char*>(output) + k * bytes, bytes, type, peer, comm, stream), "ncclRecv");
      }
      return;
    case PG_COLLECTIVE_SEND: return check(l.ncclSend(input, count, type, call.peer, comm, stream), "ncclSend");
    case PG_COLLECTIVE_RECEIVE: return check(l.ncclRecv(output, count, type, call.peer, comm, stream), "ncclRecv");
    default: pg::fail_support(pg::format("a collective of kind %u", call.kind));
  }
}

}  // namespace nccl
