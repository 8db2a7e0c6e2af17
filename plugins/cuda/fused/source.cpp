// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>
#include <cmath>

#include "../fault.hpp"
#include "expression.hpp"
#include "node_text.hpp"
#include "operand_walk.hpp"
#include "perigee/kernels/float16.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

// ---- numbers ----

template <class T>
uint64_t word_of(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

// As elementwise kernels narrow what the program gives: integers lose the fraction, and are clamped.
int64_t whole(double x) {
  if (!(x > -0x1p63)) return x != x ? 0 : INT64_MIN;
  return x < 0x1p63 ? static_cast<int64_t>(x) : INT64_MAX;
}

uint64_t operand_word(uint32_t dtype, const pg_number& value) {
  if (dtype == PG_F64) return word_of(value.real);
  if (pg::dtype_class(dtype) == PG_M_FLOAT) return word_of(static_cast<float>(value.real));
  if (dtype == PG_I64) return word_of(pg::is_whole(value) ? value.integer : whole(value.real));
  return word_of(static_cast<int32_t>(whole(value.real)));
}

// What a tensor of the dtype holds of it.
uint64_t moved_word(uint32_t dtype, const pg_number& value) {
  switch (dtype) {
    case PG_F16: return word_of(pg::to_float(pg::to_f16(static_cast<float>(value.real))));
    case PG_BF16: return word_of(pg::to_float(pg::to_bf16(static_cast<float>(value.real))));
    case PG_I16: return word_of(static_cast<int32_t>(static_cast<int16_t>(whole(value.real))));
    case PG_I8: return word_of(static_cast<int32_t>(static_cast<int8_t>(whole(value.real))));
    case PG_U8: return word_of(static_cast<int32_t>(static_cast<uint8_t>(whole(value.real))));
    case PG_B8: return word_of(static_cast<int32_t>(value.real != 0));
    default: return operand_word(dtype, value);
  }
}

// Infinite bounds become the ends of an integer type.
uint64_t parameter_word(uint32_t dtype, double value) {
  if (dtype == PG_F64) return word_of(value);
  if (pg::dtype_class(dtype) == PG_M_FLOAT) return word_of(static_cast<float>(value));
  if (dtype == PG_I64) return word_of(whole(value));
  return word_of(static_cast<int32_t>(std::clamp<int64_t>(whole(value), INT32_MIN, INT32_MAX)));
}

// ---- the text ----

class Writer {
 public:
  Writer(const pg::Region& piece, Source& source)
      : piece_(piece), source_(source), text_(piece, source.numbers), walk_(like(piece), tensors(piece), source) {
    const pg_region& raw = *piece.raw;
    for (uint32_t i = 0; i < raw.input_count; i++) {
      text_.names[raw.inputs[i]] = pg::format("x%u", i);
      const char* element = source.operands[i].splat ? "" : ".element[i]";
      text_.line(pg::format("const auto x%u = widen(p%u%s);", i, i, element));
    }
    for (uint32_t n = 0; n < piece.node_count(); n++) text_.add(n);
    for (uint32_t k = 0; k < raw.output_count; k++)
      text_.line(pg::format("p%u.element[i] = convert<%s>(%s);", raw.input_count + k,
                            storage_name(source.operands[raw.input_count + k].dtype),
                            text_.names[raw.outputs[k]].c_str()));
    finish();
  }

 private:
  static const pg_tensor& like(const pg::Region& piece) { return piece.value(piece.raw->outputs[0]); }
  static std::vector<const pg_tensor*> tensors(const pg::Region& piece) {
    std::vector<const pg_tensor*> all;
    for (uint32_t i = 0; i < piece.raw->input_count; i++) all.push_back(&piece.value(piece.raw->inputs[i]));
    for (uint32_t i = 0; i < piece.raw->output_count; i++) all.push_back(&piece.value(piece.raw->outputs[i]));
    return all;
  }

  void finish() {
    const uint32_t inputs = piece_.raw->input_count, all = static_cast<uint32_t>(source_.operands.size());
    const int width = source_.width;
    std::string& t = source_.text;
    source_.faulty = text_.faulty;
    t = source_.faulty ? "#include \"faults.hpp\"\n" : "";
    t += "#include \"region.hpp\"\nusing namespace cuda::fused;\nusing namespace pg::math;\n";
    t += pg::format(
        "struct Arguments {\n  int64_t count, items;\n  uint64_t aligned;\n  char* data[%u];\n"
        "  uint64_t number[%zu];\n",
        all, std::max<size_t>(source_.numbers.size(), 1));
    t += walk_.members();
    if (source_.faulty) t += "  cuda::FaultSite fault;\n";
    t += pg::format(
        "};\nextern \"C\" __global__ void __launch_bounds__(256) %s(const __grid_constant__ Arguments a) {\n",
        kKernelName);
    t += "  FIND_NUMBERS\n";
    t += "  for (int64_t item = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; item < a.items;\n"
         "       item += static_cast<int64_t>(gridDim.x) * 256) {\n";
    t += pg::format("    const int64_t at = item * %d;\n", width);
    t += walk_.linear() && width > 1
             ? pg::format("    const int n = a.count - at < %d ? static_cast<int>(a.count - at) : %d;\n", width, width)
             : pg::format("    const int n = %d;\n", width);
    t += walk_.locate("item");
    for (uint32_t k = 0; k < all; k++)
      t += k < inputs ? load_text(source_, walk_, k, "n")
                      : pg::format("    Packet<%s, %d> p%u;\n", storage_name(source_.operands[k].dtype), width, k);
    t += pg::format("#pragma unroll\n    for (int i = 0; i < %d; i++) {\n", width) + text_.body + "    }\n";
    for (uint32_t k = inputs; k < all; k++) t += store_text(source_, walk_, k, "n");
    t += "  }\n}\n";
  }

  const pg::Region& piece_;
  Source& source_;
  NodeText text_;
  OperandWalk walk_;
};

}  // namespace

std::string load_text(const Source& source, const OperandWalk& walk, uint32_t k, const char* count) {
  const Operand& o = source.operands[k];
  const char* type = storage_name(o.dtype);
  if (o.splat)
    return pg::format("    const %s p%u = load_one<%s>(a.data[%u], %s);\n", type, k, type, k, walk.place(k).c_str());
  return pg::format("    const Packet<%s, %d> p%u = load<%s, %d>(a.data[%u], %s, %s, %s);\n", type, source.width, k,
                    type, source.width, k, walk.place(k).c_str(), walk.whole(k, count).c_str(), count);
}

std::string store_text(const Source& source, const OperandWalk& walk, uint32_t k, const char* count) {
  return pg::format("    store<%s, %d>(a.data[%u], %s, %s, %s, p%u);\n", storage_name(source.operands[k].dtype),
                    source.width, k, walk.place(k).c_str(), walk.whole(k, count).c_str(), count, k);
}

uint64_t number_word(const KernelNumber& number, const pg_launch& launch) {
  const char* attrs = static_cast<const char*>(launch.attrs) + number.attrs;
  switch (number.use) {
    case KernelNumber::kOperand: return operand_word(number.dtype, number.value(attrs));
    case KernelNumber::kMoved: return moved_word(number.dtype, number.value(attrs));
    case KernelNumber::kParameter: return parameter_word(number.dtype, number.parameters(attrs, number.index));
    case KernelNumber::kSpecial: return word_of(number.parameters(attrs, number.index));
    case KernelNumber::kReal: return word_of(pg::read_attr<double>(attrs, number.real.kind, number.real.offset));
    case KernelNumber::kPower: break;
  }
  const double exponent = number.value(attrs).real;
  return exponent == 2 ? 1 : exponent == 0.5 ? 2 : exponent == -0.5 ? 3 : 0;
}

std::string Source::complete(bool renewed) const {
  if (!renewed) return "#define NUMBER(i) a.number[i]\n#define FIND_NUMBERS\n" + text;
  return pg::format(
             "#define NUMBER(i) known[i]\n"
             "#define FIND_NUMBERS uint64_t known[%zu]; read_numbers(a.number[0], known);\n",
             std::max<size_t>(numbers.size(), 1)) +
         text;
}

uint64_t Source::argument_bytes() const {
  return 8 * (3 + operands.size() + std::max<size_t>(numbers.size(), 1) + axes.size() + strides.size()) +
         (faulty ? sizeof(FaultSite) : 0);
}

Source write_source(const pg::Region& piece) { return write_piece<Writer, Source>(piece); }

}  // namespace cuda::fused
