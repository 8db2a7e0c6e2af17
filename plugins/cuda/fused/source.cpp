// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>
#include <cmath>

#include "../walk.hpp"
#include "expression.hpp"
#include "perigee/kernels/float16.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

using pg::ScalarOperand;

constexpr size_t kAxisWords = 2;  // of the kernel's struct Axis

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

// ---- how operands lie ----

// Axes of one element are dropped, the others put in the order in which the results lie, neighbours merged where all
// operands allow it. Operands whose strides are equal then share a layout.
class Walk {
 public:
  Walk(const pg::Region& piece, Source& source) : source_(source) {
    const pg_region& raw = *piece.raw;
    const pg_tensor& like = piece.value(raw.outputs[0]);
    std::vector<std::vector<int64_t>> given;
    auto add = [&](uint32_t value) {
      const pg_tensor& t = piece.value(value);
      if (t.rank > like.rank) pg::fail_support("an operand of more axes than the result");
      std::vector<int64_t> stride(PG_MAX_RANK);
      pg::broadcast_strides(t, like.rank, stride.data());
      given.push_back(std::move(stride));
      source.operands.push_back({pg::dtype_of(t)});
    };
    for (uint32_t i = 0; i < raw.input_count; i++) add(raw.inputs[i]);
    for (uint32_t i = 0; i < raw.output_count; i++) add(raw.outputs[i]);
    source.count = pg::element_count(like);
    merge(like, given);
    for (size_t k = 0; k < given.size(); k++) {
      auto known = std::find(layouts_.begin(), layouts_.end(), lanes_[k]);
      source.operands[k].layout = static_cast<uint32_t>(known - layouts_.begin());
      if (known == layouts_.end()) layouts_.push_back(lanes_[k]);
    }
    choose_width();
    describe();
  }

  size_t rank() const { return shape_.size(); }
  size_t layouts() const { return layouts_.size(); }
  // Elements lie in a row wherever they lie at all, so that a packet's number is its place.
  bool linear() const {
    return rank() == 0 || (rank() == 1 && std::all_of(layouts_.begin(), layouts_.end(),
                                                      [](const auto& lane) { return lane[0] == 0 || lane[0] == 1; }));
  }
  bool wide() const { return wide_; }

 private:
  void merge(const pg_tensor& like, const std::vector<std::vector<int64_t>>& given) {
    lanes_.resize(given.size());
    int order[PG_MAX_RANK];
    for (int k = pg::axes_by_stride(like, order); k-- > 0;) {
      const auto axis = static_cast<size_t>(order[k]);
      const int64_t size = like.shape[axis];
      bool joins = !shape_.empty();
      for (size_t i = 0; i < given.size() && joins; i++) joins = lanes_[i].back() == given[i][axis] * size;
      if (joins)
        shape_.back() *= size;
      else
        shape_.push_back(size);
      for (size_t i = 0; i < given.size(); i++) {
        if (!joins) lanes_[i].push_back(0);
        lanes_[i].back() = given[i][axis];
      }
    }
  }

  // Up to 16 bytes an operand, and no more registers than a thread has for all of them.
  void choose_width() {
    if (shape_.empty()) return;
    int64_t largest = 1;
    for (const Operand& o : source_.operands) largest = std::max(largest, pg::dtype_bytes(o.dtype));
    int64_t width = std::min<int64_t>(16 / largest, 8);
    if (source_.operands.size() > 24) width = 1;
    for (const auto& lane : layouts_)
      if (lane.back() != 0 && lane.back() != 1) width = 1;
    while (width > 1 && (source_.count < 2 * width || (!linear() && shape_.back() % width != 0))) width /= 2;
    source_.width = static_cast<int>(width);
  }

  void describe() {
    const int64_t width = source_.width;
    source_.items = divide(source_.count, width);
    wide_ = source_.count > INT32_MAX;
    for (Operand& o : source_.operands) {
      const auto& lane = layouts_[o.layout];
      o.splat = lane.empty() || lane.back() == 0;
      for (size_t i = 0; i + 1 < lane.size(); i++) o.ragged = o.ragged || lane[i] % width != 0;
    }
    if (linear()) return;
    for (size_t i = 0; i < rank(); i++) {
      const int64_t size = i + 1 == rank() ? shape_[i] / width : shape_[i];
      const Divider divider(wide_ ? 1 : size);
      source_.axes.push_back(static_cast<uint64_t>(size));
      source_.axes.push_back(divider.multiplier | static_cast<uint64_t>(divider.shift) << 32);
    }
    for (const auto& lane : layouts_)
      for (size_t i = 0; i < rank(); i++)
        source_.strides.push_back(static_cast<uint64_t>(i + 1 == rank() ? lane[i] * width : lane[i]));
  }
  static int64_t divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

  Source& source_;
  std::vector<int64_t> shape_;
  std::vector<std::vector<int64_t>> lanes_, layouts_;  // strides, by operand; those that differ
  bool wide_ = false;
};

// ---- the text ----

class Writer {
 public:
  Writer(const pg::Region& piece, Source& source) : piece_(piece), source_(source), walk_(piece, source) {
    const pg_region& raw = *piece.raw;
    names_.resize(raw.value_count);
    for (uint32_t i = 0; i < raw.input_count; i++) {
      names_[raw.inputs[i]] = format("x%u", i);
      line(format("const auto x%u = widen(p%u%s);", i, i, source.operands[i].splat ? "" : ".element[i]"));
    }
    for (uint32_t n = 0; n < piece.node_count(); n++) add_node(n);
    for (uint32_t k = 0; k < raw.output_count; k++)
      line(format("p%u.element[i] = convert<%s>(%s);", raw.input_count + k,
                  storage_name(source.operands[raw.input_count + k].dtype), names_[raw.outputs[k]].c_str()));
    finish();
  }

 private:
  template <class... A>
  static std::string format(const char* pattern, A... arguments) {
    return pg::format(pattern, arguments...);
  }
  void line(const std::string& text) { body_ += "      " + text + "\n"; }

  // A word of the arguments, as the kernel reads it.
  std::string number(KernelNumber number, const char* type) {
    source_.numbers.push_back(std::move(number));
    return format("bits_as<%s>(NUMBER(%zu))", type, source_.numbers.size() - 1);
  }

  void add_node(uint32_t n) {
    const pg_node& raw = piece_.node(n);
    NodeExpression node;
    read_node(piece_, n, node);
    const pg::KernelCall call(&node.call.call);
    const uint32_t result = pg::dtype_of(call.out(0));
    const std::string made = node.moves ? names_[raw.inputs[0]] : expression(call, node, raw);
    names_[raw.outputs[0]] = format("v%u", n);
    line(format("const auto v%u = rounded<%s>(%s);", n, storage_name(result), made.c_str()));
  }

  std::string operand(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw, int k) {
    const ScalarOperand& operand = node.step.operand[k];
    if (!is_number(call, operand)) return names_[raw.inputs[operand.index]];
    KernelNumber made;
    made.use = node.step.primitive == pg::math::pSelect ? KernelNumber::kMoved : KernelNumber::kOperand;
    made.dtype = node.dtype;
    made.attrs = raw.attrs_offset;
    made.value = pg::ScalarNumber(call, operand);
    return number(std::move(made), compute_name(node.dtype));
  }

  std::string expression(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw) {
    const pg::ScalarStep& step = node.step;
    const pg::math::PrimitiveInfo& info = pg::math::info(step.primitive);
    const bool special = info.cost == pg::math::kSpecial;
    const char* type = compute_name(node.dtype);
    std::string in[3];
    for (int k = 0; k < step.operands; k++) in[k] = operand(call, node, raw, k);
    if (info.form == pg::math::kChoice) return "(" + in[0] + " != 0 ? " + in[1] + " : " + in[2] + ")";
    if (step.primitive == pg::math::pPow && is_number(call, step.operand[1])) {
      KernelNumber power;
      power.use = KernelNumber::kPower;
      power.dtype = node.dtype;
      power.attrs = raw.attrs_offset;
      power.value = pg::ScalarNumber(call, step.operand[1]);
      return "power_of(" + in[0] + ", " + in[1] + ", " + number(std::move(power), "uint64_t") + ")";
    }
    std::string arguments = special ? "static_cast<double>(" + in[0] + ")" : in[0];
    for (int k = 1; k < step.operands; k++) arguments += ", " + in[k];
    if (pg::math::has_parameters(info.form)) arguments += ", " + parameters(call, node, raw, special);
    const std::string made = format("%s()(%s)", info.name, arguments.c_str());
    if (info.result == pg::math::kTruth) return "static_cast<int32_t>(" + made + ")";
    return special ? format("static_cast<%s>(", type) + made + ")" : made;
  }

  // Declares the array that a functor takes, and answers its name.
  std::string parameters(const pg::KernelCall& call, const NodeExpression& node, const pg_node& raw, bool special) {
    const char* type = special ? "double" : compute_name(node.dtype);
    const std::string name = format("q%zu", arrays_++);
    std::string values;
    const pg::math::Parameters known(call, node.step, node.dtype);
    for (int i = 0; i < pg::math::kMaxParameters; i++) {
      values += i == 0 ? "" : ", ";
      if (i >= known.count()) {
        values += "0";
        continue;
      }
      KernelNumber made;
      made.use = special ? KernelNumber::kSpecial : KernelNumber::kParameter;
      made.index = static_cast<uint8_t>(i);
      made.dtype = node.dtype;
      made.attrs = raw.attrs_offset;
      made.parameters = known;
      values += number(std::move(made), type);
    }
    line(format("const %s %s[] = {%s};", type, name.c_str(), values.c_str()));
    return name;
  }

  void finish() {
    const uint32_t inputs = piece_.raw->input_count, all = static_cast<uint32_t>(source_.operands.size());
    const int width = source_.width;
    const size_t rank = std::max<size_t>(walk_.rank(), 1), layouts = walk_.layouts();
    std::string& t = source_.text;
    t = "#include \"region.hpp\"\nusing namespace cuda::fused;\nusing namespace pg::math;\n";
    t += format(
        "struct Arguments {\n  int64_t count, items;\n  uint64_t aligned;\n  char* data[%u];\n"
        "  uint64_t number[%zu];\n",
        all, std::max<size_t>(source_.numbers.size(), 1));
    if (!walk_.linear()) t += format("  Axis axis[%zu];\n  int64_t stride[%zu][%zu];\n", rank, layouts, rank);
    t += format("};\nextern \"C\" __global__ void __launch_bounds__(256) %s(const __grid_constant__ Arguments a) {\n",
                kKernelName);
    t += "  FIND_NUMBERS\n";
    t += "  for (int64_t item = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; item < a.items;\n"
         "       item += static_cast<int64_t>(gridDim.x) * 256) {\n";
    t += format("    const int64_t at = item * %d;\n", width);
    t += walk_.linear() && width > 1
             ? format("    const int n = a.count - at < %d ? static_cast<int>(a.count - at) : %d;\n", width, width)
             : format("    const int n = %d;\n", width);
    if (!walk_.linear())
      t += format("    int64_t offset[%zu];\n    locate<%s, %zu, %zu>(item, a.axis, a.stride, offset);\n", layouts,
                  walk_.wide() ? "true" : "false", rank, layouts);
    for (uint32_t k = 0; k < all; k++) {
      const Operand& o = source_.operands[k];
      const char* type = storage_name(o.dtype);
      if (k >= inputs)
        t += format("    Packet<%s, %d> p%u;\n", type, width, k);
      else if (o.splat)
        t += format("    const %s p%u = load_one<%s>(a.data[%u], %s);\n", type, k, type, k, place(k).c_str());
      else
        t += format("    const Packet<%s, %d> p%u = load<%s, %d>(a.data[%u], %s, %s, n);\n", type, width, k, type,
                    width, k, place(k).c_str(), whole(k).c_str());
    }
    t += format("#pragma unroll\n    for (int i = 0; i < %d; i++) {\n", width) + body_ + "    }\n";
    for (uint32_t k = inputs; k < all; k++)
      t += format("    store<%s, %d>(a.data[%u], %s, %s, n, p%u);\n", storage_name(source_.operands[k].dtype), width, k,
                  place(k).c_str(), whole(k).c_str(), k);
    t += "  }\n}\n";
  }

  std::string place(uint32_t k) const {
    const Operand& o = source_.operands[k];
    if (!walk_.linear()) return format("offset[%u]", o.layout);
    return o.splat ? "0" : "at";
  }
  std::string whole(uint32_t k) const {
    if (source_.width == 1) return "true";
    return format("(a.aligned >> %u & 1) != 0%s", k,
                  walk_.linear() ? format(" && n == %d", source_.width).c_str() : "");
  }

  const pg::Region& piece_;
  Source& source_;
  Walk walk_;
  std::vector<std::string> names_;  // by value
  std::string body_;
  size_t arrays_ = 0;
};

}  // namespace

uint64_t number_word(const KernelNumber& number, const pg_launch& launch) {
  const char* attrs = static_cast<const char*>(launch.attrs) + number.attrs;
  switch (number.use) {
    case KernelNumber::kOperand: return operand_word(number.dtype, number.value(attrs));
    case KernelNumber::kMoved: return moved_word(number.dtype, number.value(attrs));
    case KernelNumber::kParameter: return parameter_word(number.dtype, number.parameters(attrs, number.index));
    case KernelNumber::kSpecial: return word_of(number.parameters(attrs, number.index));
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
  return 8 * (3 + operands.size() + std::max<size_t>(numbers.size(), 1) + axes.size() + strides.size());
}

Source write_source(const pg::Region& piece) {
  const pg_region& raw = *piece.raw;
  if (raw.output_count == 0 || raw.input_count + raw.output_count > kMostOperands)
    pg::fail_support("the region has too many operands");
  Source source;
  Writer(piece, source);
  if (source.argument_bytes() > kMostArguments) pg::fail_support("the region has too many arguments");
  return source;
}

}  // namespace cuda::fused
