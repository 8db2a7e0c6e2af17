// SPDX-License-Identifier: Apache-2.0
// lstm_cell and its way back.
#include "kernels/lstm.hpp"

namespace cpu {
namespace {

class LstmCell final : public LstmRows {
 public:
  LstmCell(const pg::KernelCall& call, pg::Plan&) : LstmRows(call.in(2)) {}
  void launch(const pg_launch& l) override {
    forward({pg::input<const char>(l, 0), pg::input<const char>(l, 1), pg::input<const char>(l, 2),
             pg::output<char>(l, 0), pg::output<char>(l, 1), pg::output<char>(l, 2)});
  }
};
PG_KERNEL("lstm_cell", LstmCell);

class LstmCellGrad final : public LstmRows {
 public:
  LstmCellGrad(const pg::KernelCall& call, pg::Plan&) : LstmRows(call.in(3)) {}
  void launch(const pg_launch& l) override {
    back({pg::input<const char>(l, 0), nullptr, pg::input<const char>(l, 1), pg::input<const char>(l, 2),
          pg::input<const char>(l, 3), pg::output<char>(l, 0), pg::output<char>(l, 1)});
  }
};
PG_KERNEL("lstm_cell_grad", LstmCellGrad);

}  // namespace
}  // namespace cpu
