// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <bit>
#include <map>
#include <string_view>

#include "perigee/kernels/strided.hpp"

namespace cpu {
namespace {

std::map<std::string_view, MakeLines>& makers() {
  static std::map<std::string_view, MakeLines> by_operator;
  return by_operator;
}

void require_row_major(const pg::KernelCall& call) {
  auto dense = [](const pg_tensor* t) {
    if (t != nullptr && !pg::is_dense(*t)) pg::fail_support("not row-major");
  };
  for (uint32_t i = 0; i < call.input_count(); i++) dense(call.raw->inputs[i]);
  for (uint32_t i = 0; i < call.output_count(); i++) dense(call.raw->outputs[i]);
}

}  // namespace

int add_lines(const char* op, MakeLines make) {
  makers()[op] = make;
  return 0;
}

MakeLines find_lines(const char* op) {
  auto at = makers().find(op);
  return at == makers().end() ? nullptr : at->second;
}

uint32_t last_axes(const pg::KernelCall& call, uint32_t axes) {
  const uint32_t rank = call.in(0).rank, count = static_cast<uint32_t>(std::popcount(axes));
  if (axes == 0 || axes != ((uint64_t{1} << rank) - 1) >> (rank - count) << (rank - count))
    pg::fail_support("not the last axes");
  require_row_major(call);
  return count;
}

uint32_t first_axes(const pg::KernelCall& call, uint32_t axes) {
  const uint32_t count = static_cast<uint32_t>(std::popcount(axes));
  require_row_major(call);
  return count < call.in(0).rank && axes == (1u << count) - 1 ? count : 0;
}

}  // namespace cpu
