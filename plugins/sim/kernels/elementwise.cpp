// SPDX-License-Identifier: Apache-2.0
// All elementwise operators, from their scalar expressions.
#include <memory>

#include "../launch.hpp"
#include "../plugin.hpp"
#include "perigee/kernels/reference/scalar.hpp"

namespace sim {
namespace {

namespace math = pg::math;

// What a primitive is given in a call, as a mask of its types.
uint8_t types_of(const pg::ScalarStep& step, uint32_t dtype) {
  if (step.of_truth || dtype == PG_B8) return math::kOfBooleans;
  return (pg::dtype_class(dtype) & (PG_M_FLOAT | PG_M_FLOAT8)) != 0 ? math::kOfFloats : math::kOfIntegers;
}

class Elementwise final : public pg::CapturedKernel {
 public:
  static void supports(const pg::KernelCall& call) {
    if (plugin->device().settings().missing.count(call.op()) != 0)
      pg::fail_support("it is switched off by PERIGEE_SIM_MISSING");
    check_dtypes(call, kStored);
    const pg::ScalarCall scalar(call);
    for (int i = 0; i < scalar.program.count; i++) {
      const pg::ScalarStep& step = scalar.program.step[i];
      const math::PrimitiveInfo& info = math::info(step.primitive);
      if ((info.types & types_of(step, scalar.dtype)) == 0)
        pg::fail_support(pg::format("%s does not take %s", info.name, pg::dtype_name(scalar.dtype)));
    }
  }

  Elementwise(const pg::KernelCall& call, pg::Plan&) : op_(call.raw->op), scalar_(call) {
    for (int i = 0; i < scalar_.program.count; i++) {
      const pg::ScalarStep& step = scalar_.program.step[i];
      for (int k = 0; k < 3; k++) {
        const bool input = step.operand[k].kind == pg::ScalarOperand::kInput && call.has(step.operand[k].index);
        const bool number = k < step.operands && step.operand[k].kind != pg::ScalarOperand::kStep && !input;
        numbers_.push_back(number ? pg::ScalarNumber(call, step.operand[k]) : pg::ScalarNumber());
      }
      parameters_.push_back(math::Parameters(call, step, scalar_.dtype));
    }
  }

  void launch(const pg_launch& call) override { launch_captured(call, {0, 0}); }
  void launch_captured(const pg_launch& call, pg_address block) override {
    sim::launch(
        op_, call, block,
        [scalar = scalar_, numbers = numbers_, parameters = parameters_, inputs = op_->input_count](const Work& work) {
          pg::reference::ScalarArguments arguments;
          for (const pg::ScalarNumber& number : numbers) arguments.numbers.push_back(number(work.attrs()));
          for (const math::Parameters& p : parameters)
            for (int i = 0; i < math::kMaxParameters; i++)
              arguments.parameters.push_back(i < p.count() ? p(work.attrs(), i) : 0);
          for (uint32_t i = 0; i < inputs; i++) arguments.inputs.push_back(work.input(i));
          pg::reference::scalar(scalar.program, scalar.dtype, arguments, work.out(0));
        });
  }
  uint64_t runtime(const pg_launch& call, void* block) override { return put_runtime(*op_, call, block); }

 private:
  const pg_op_info* op_;  // lives as long as the process
  pg::ScalarCall scalar_;
  std::vector<pg::ScalarNumber> numbers_;
  std::vector<math::Parameters> parameters_;
};

PG_KERNEL("*", Elementwise, PG_KERNEL_SCALAR | PG_KERNEL_ANY_ORDER);

}  // namespace
}  // namespace sim
