// SPDX-License-Identifier: Apache-2.0
// What faults say. The words are those of the cpu's kernels: a program reads the same on either device.
#include <bit>

#include "fault_host.hpp"

namespace cuda {
namespace {

long long number(int64_t value) { return static_cast<long long>(value); }

// "[0, 3]"
std::string place(const FaultRecord& record) {
  std::string text = "]";
  int64_t rest = record.position;
  for (uint32_t i = record.rank < PG_MAX_RANK ? record.rank : PG_MAX_RANK; i-- > 0;) {
    int64_t size = record.shape[i] > 0 ? record.shape[i] : 1;
    text = std::to_string(rest % size) + (text == "]" ? "" : ", ") + text;
    rest /= size;
  }
  return "[" + text;
}

std::string out_of_range(const char* what, const FaultRecord& record) {
  std::string of = record.axis > 0 ? " for axis " + std::to_string(record.axis) : std::string();
  std::string want =
      record.limit > 0 ? "expected 0 to " + std::to_string(record.limit - 1) : std::string("it is empty");
  return pg::format("%s %lld at position %s is out of range%s; %s", what, number(record.value), place(record).c_str(),
                    of.c_str(), want.c_str());
}

std::string text_of(const FaultRecord& record) {
  switch (static_cast<FaultKind>(record.kind)) {
    case FaultKind::kIndex: return out_of_range("index", record);
    case FaultKind::kToken: return out_of_range("token", record);
    case FaultKind::kTarget: return out_of_range("target", record);
    case FaultKind::kClass: return out_of_range("class", record);
    case FaultKind::kPlane:
      return pg::format("index %lld is out of range for a plane of %lld elements", number(record.value),
                        number(record.limit));
    case FaultKind::kDivisionByZero: return "integer division by zero";
    case FaultKind::kNegativePower: return "integers cannot be raised to a negative integer power";
    case FaultKind::kProbability:
      return pg::format("p is %g at position %s; expected 0 to 1", std::bit_cast<double>(record.value),
                        place(record).c_str());
    case FaultKind::kTooMany: return "the mask selects more elements than dy has";
    case FaultKind::kNone: break;
  }
  return pg::format("a kernel noted a fault of the unknown kind %d", record.kind);
}

}  // namespace

pg::Error fault_error(const FaultRecord& record) {
  return pg::Error(PG_E_INVALID_ARGUMENT, text_of(record), static_cast<int64_t>(record.sequence));
}

}  // namespace cuda
