// SPDX-License-Identifier: Apache-2.0
// What faults say, in the words that kernels on any device use.
#include <algorithm>
#include <bit>

#include "fault_host.hpp"
#include "perigee/kernels/out_of_range.hpp"

namespace cuda {
namespace {

std::string place(const FaultRecord& record) {
  return pg::place_text(record.shape, std::min<uint32_t>(record.rank, PG_MAX_RANK), record.position);
}

std::string out_of_range(const char* what, const FaultRecord& record) {
  return pg::out_of_range({what, record.axis}, record.value, place(record), record.limit);
}

// Positions of these kinds are in rows: of probabilities with a place behind them, of what a sequence consists of.
long long row_of(const FaultRecord& record) { return record.position / std::max<int64_t>(record.shape[1], 1); }
long long column_of(const FaultRecord& record) { return record.position % std::max<int64_t>(record.shape[1], 1); }

std::string chance(const FaultRecord& record) {
  return pg::format("multinomial: p is %g at row %lld, category %lld; expected finite numbers from 0",
                    std::bit_cast<double>(record.value), row_of(record), column_of(record));
}
std::string too_few(const FaultRecord& record) {
  return pg::format("multinomial: row %lld has %lld categories of probability above 0; expected at least %lld",
                    row_of(record), static_cast<long long>(record.value), static_cast<long long>(record.limit));
}
std::string of_sequence(const char* what, const FaultRecord& record) {
  return pg::format("%s of sequence %lld is %lld; expected 0 to %lld", what, row_of(record),
                    static_cast<long long>(record.value), static_cast<long long>(record.limit));
}

std::string text_of(const FaultRecord& record) {
  switch (static_cast<FaultKind>(record.kind)) {
    case FaultKind::kIndex: return out_of_range("index", record);
    case FaultKind::kToken: return out_of_range("token", record);
    case FaultKind::kTarget: return out_of_range("target", record);
    case FaultKind::kClass: return out_of_range("class", record);
    case FaultKind::kPlane: return pg::out_of_plane(record.value, record.limit);
    case FaultKind::kDivisionByZero: return "integer division by zero";
    case FaultKind::kNegativePower: return "integers cannot be raised to a negative integer power";
    case FaultKind::kProbability: return pg::no_probability(std::bit_cast<double>(record.value), place(record));
    case FaultKind::kTooMany: return "the mask selects more elements than dy has";
    case FaultKind::kChance: return chance(record);
    case FaultKind::kTooFew: return too_few(record);
    case FaultKind::kInputLength: return of_sequence("the input length", record);
    case FaultKind::kTargetLength: return of_sequence("the target length", record);
    case FaultKind::kLabel: return of_sequence("a label", record);
    case FaultKind::kBlank:
      return pg::format("a label of sequence %lld is the blank, %lld", row_of(record),
                        static_cast<long long>(record.value));
    case FaultKind::kNone: break;
  }
  return pg::format("a kernel noted a fault of the unknown kind %d", record.kind);
}

}  // namespace

pg::Error fault_error(const FaultRecord& record) {
  return pg::Error(PG_E_INVALID_ARGUMENT, text_of(record), static_cast<int64_t>(record.sequence));
}

}  // namespace cuda
