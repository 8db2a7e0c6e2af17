// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>

namespace cpu {

using pg::ScalarOperand;
using pg::ScalarStep;
using pg::math::PrimitiveInfo;

int width_of(Storage s) {
  if (s == sBool) return -1;
  return s == sF64 || s == sI64 ? 1 : 0;
}

namespace {

constexpr int kCostly = 8;             // of cheap steps
constexpr uint32_t kMostMemory = 192;  // operands

// ---- values ----

// What a program computes once: an element of an input, a number, or a step's result.
struct Value {
  enum Kind : uint8_t { kInput, kNumber, kPrimitive, kRound, kToFloat, kToTruth };
  Kind kind;
  Storage storage = sF32;  // of kInput: its elements; of kRound: what to
  Storage word = sF32;     // what its words are: sF32, sI32, sF64 or sI64
  Primitive primitive = pAdd;
  Compute compute = kF32;
  uint32_t from[3] = {PG_VALUE_NONE, PG_VALUE_NONE, PG_VALUE_NONE};
  uint32_t index = 0;       // of the region's input, of the number
  uint32_t parameters = 0;  // bytes
  // ---- while steps are made ----
  uint32_t uses = 0;
  uint32_t memory = UINT32_MAX;  // operand that holds its words
  uint32_t slot = UINT32_MAX;    // of these, the slot
};

// Steps whose result needs no rounding where their operands are rounded already. Whole numbers wrap around.
bool chooses(Primitive p, bool real) {
  switch (p) {
    case pMaximum:
    case pMinimum:
    case pFmax:
    case pFmin:
    case pSelect:
    case pRelu: return true;
    case pCopysign:
    case pNeg:
    case pAbs:
    case pReluGrad: return real;
    default: return false;
  }
}

Storage word_of(bool real, int width) {
  if (real) return width == 0 ? sF32 : sF64;
  return width == 0 ? sI32 : sI64;
}
Compute compute_of(bool real, int width) {
  if (real) return width == 0 ? kF32 : kF64;
  return width == 0 ? kI32 : kI64;
}

// Values of the nodes, in an order in which each stands behind what it is made of.
class Values {
 public:
  Values(const pg::Region& piece, Program& program) : piece_(piece), program_(program) {
    known_.assign(piece.raw->value_count, PG_VALUE_NONE);
    for (uint32_t n = 0; n < piece.node_count(); n++) find_width(n);
    for (uint32_t i = 0; i < piece.raw->input_count; i++) {
      const Storage s = storage_of(piece.value(piece.raw->inputs[i]));
      Value v{Value::kInput, s, word_of(is_float(s), program_.width)};
      v.index = i;
      known_[piece.raw->inputs[i]] = add(v);
    }
    for (uint32_t n = 0; n < piece.node_count(); n++) add_node(n);
  }
  std::vector<Value> list;
  uint32_t of(uint32_t region_value) const { return known_[region_value]; }

 private:
  void find_width(uint32_t node) {
    const pg_node& n = piece_.node(node);
    const int width = width_of(storage_of(piece_.value(n.outputs[0])));
    if (width == 1) program_.width = 1;
    for (uint32_t i = 0; i < n.input_count; i++)
      if (n.inputs[i] != PG_VALUE_NONE && width_of(storage_of(piece_.value(n.inputs[i]))) == 1) program_.width = 1;
  }
  uint32_t add(const Value& v) {
    list.push_back(v);
    return static_cast<uint32_t>(list.size() - 1);
  }
  uint32_t convert_value(Value::Kind kind, uint32_t from, Storage storage, Storage word) {
    Value v{kind, storage, word};
    v.from[0] = from;
    return add(v);
  }
  // What a storage type holds of it.
  uint32_t rounded(uint32_t value, Storage storage) {
    if (threaded().round[storage][program_.width] == nullptr) return value;
    return convert_value(Value::kRound, value, storage, list[value].word);
  }

  void add_node(uint32_t node) {
    const pg_node& raw = piece_.node(node);
    NodeExpression e;
    read_node(piece_, node, e);
    const pg::KernelCall call(&e.call.call);
    std::vector<uint32_t> results(static_cast<size_t>(e.program.count));
    auto operand = [&](const ScalarOperand& o, const ScalarStep& step, bool condition, bool moved) {
      if (o.kind == ScalarOperand::kStep) return beside(results[o.index], step, e.dtype, condition);
      if (!o.uniform() && call.has(o.index)) return beside(known_[raw.inputs[o.index]], step, e.dtype, condition);
      const bool real = is_float(e.dtype) && !step.of_truth;
      Value v{Value::kNumber, e.dtype, word_of(real, program_.width)};
      v.index = static_cast<uint32_t>(program_.numbers.size());
      program_.numbers.push_back({pg::ScalarNumber(call, o), raw.attrs_offset, moved, e.dtype, v.word});
      return add(v);
    };
    for (int i = 0; i < e.program.count; i++) {
      const ScalarStep& step = e.program.step[i];
      const PrimitiveInfo& info = pg::math::info(step.primitive);
      const bool choice = info.form == pg::math::kChoice, real = is_float(e.dtype) && !step.of_truth;
      Value v{Value::kPrimitive};
      v.primitive = step.primitive;
      v.compute = compute_of(real, program_.width);
      v.word = word_of(real && !(info.result == pg::math::kTruth), program_.width);
      bool exact = chooses(step.primitive, real);
      for (int k = 0; k < step.operands; k++) {
        v.from[k] = operand(step.operand[k], step, choice && k == 0, choice);
        exact = exact && (choice || list[v.from[k]].kind != Value::kNumber);
      }
      if (!real && pg::math::rounds(step.primitive)) {
        results[static_cast<size_t>(i)] = v.from[0];
        continue;
      }
      if (step.parameters > 0) {
        v.parameters = program_.parameter_bytes;
        program_.parameters.push_back(
            {ParameterBlock(call, step, step.of_truth ? PG_B8 : e.dtype_code), raw.attrs_offset, v.parameters});
        program_.parameter_bytes += pg::math::kMaxParameters * 8;
      }
      program_.cost += info.cost == pg::math::kCheap ? 1 : kCostly;
      uint32_t made = add(v);
      if (info.result != pg::math::kTruth && !exact) made = rounded(made, step.of_truth ? sBool : e.dtype);
      results[static_cast<size_t>(i)] = made;
    }
    const ScalarOperand& last = e.program.result;
    uint32_t made = last.kind == ScalarOperand::kStep ? results[last.index] : known_[raw.inputs[last.index]];
    const bool truth = last.truth || e.dtype == sBool;
    known_[raw.outputs[0]] = as_output(made, truth ? sBool : e.dtype, storage_of(piece_.value(raw.outputs[0])));
  }

  // An operand as the step's arithmetic wants it: a truth value is 0 or 1 beside numbers.
  uint32_t beside(uint32_t value, const ScalarStep& step, Storage dtype, bool condition) {
    const bool real = is_float(dtype) && !step.of_truth && !condition;
    const Storage wanted = word_of(real, program_.width);
    if (list[value].word == wanted || condition) return value;
    return convert_value(Value::kToFloat, value, wanted, wanted);
  }

  uint32_t as_output(uint32_t value, Storage from, Storage to) {
    if (from == to) return value;
    if (to == sBool)
      return is_float(from) ? convert_value(Value::kToTruth, value, to, word_of(false, program_.width))
                            : rounded(value, to);
    if (is_float(to) && !is_float(from))
      value = convert_value(Value::kToFloat, value, to, word_of(true, program_.width));
    return rounded(value, to);
  }

  const pg::Region& piece_;
  Program& program_;
  std::vector<uint32_t> known_;  // by the region's value
};

// ---- steps ----

class Assembler {
 public:
  Assembler(const pg::Region& piece, Program& program)
      : piece_(piece), program_(program), values_(piece, program), list_(values_.list) {
    program_.operands.reserve(kMostMemory);
    input_left_.assign(piece.raw->input_count, 0);
    for (uint32_t i = 0; i < piece.raw->input_count; i++)
      input_operand_.push_back(new_operand({ProgramOperand::kInput, storage_of(piece.value(piece.raw->inputs[i])), i}));
    outputs_.resize(list_.size());
    for (uint32_t k = 0; k < piece.raw->output_count; k++) {
      const uint32_t value = values_.of(piece.raw->outputs[k]);
      output_operand_.push_back(
          new_operand({ProgramOperand::kOutput, storage_of(piece.value(piece.raw->outputs[k])), k}));
      outputs_[value].push_back(k);
    }
    count_uses();
  }

  void run() {
    std::vector<uint32_t> late;  // outputs
    for (uint32_t v = 0; v < list_.size(); v++) {
      if (list_[v].uses == 0 && outputs_[v].empty()) continue;  // nobody wants it
      if (list_[v].kind != Value::kInput && list_[v].kind != Value::kNumber) compute(v);
      for (uint32_t k : outputs_[v]) {
        if (now_ == v && may_store(k))
          store(k);
        else
          late.push_back(k);
      }
      if (!outputs_[v].empty() &&
          std::none_of(late.begin(), late.end(), [&](uint32_t k) { return values_.of(piece_.raw->outputs[k]) == v; }))
        release(v);
    }
    // What is written over may be read no more.
    for (uint32_t k : late) put_aside(k, late);
    for (uint32_t k : late) {
      const uint32_t v = values_.of(piece_.raw->outputs[k]);
      bring(v);
      store(k);
    }
    emit({threaded().end, nullptr, 0, 0, 0}, {threaded().end, nullptr, 0, 0, 0});
  }

 private:
  uint32_t new_operand(const ProgramOperand& o) {
    if (program_.operands.size() >= kMostMemory) pg::fail_support("the region has too many values");
    program_.operands.push_back(o);
    return static_cast<uint32_t>(program_.operands.size() - 1);
  }

  // Values stand in the order of their making: those that nobody wants are found from behind.
  void count_uses() {
    for (size_t v = list_.size(); v-- > 0;) {
      list_[v].uses += outputs_[v].empty() ? 0 : 1;  // stands until it has been stored
      if (list_[v].uses == 0) continue;
      for (uint32_t from : list_[v].from)
        if (from != PG_VALUE_NONE) list_[from].uses++;
    }
    for (const Value& v : list_)
      if (v.kind == Value::kInput) input_left_[v.index] = v.uses;
  }

  void emit(const TileStep& step) { emit(step, step); }
  void emit(const TileStep& step, const TileStep& past) {
    program_.steps.push_back(step);
    program_.past.push_back(past);
  }
  static uint16_t narrow(uint32_t operand) { return static_cast<uint16_t>(operand); }

  uint32_t take_slot() {
    if (!free_slots_.empty()) {
      const uint32_t slot = free_slots_.back();
      free_slots_.pop_back();
      return slot;
    }
    return new_operand({ProgramOperand::kSlot, word_of(true, program_.width), 0});
  }

  // An operand that holds the value's words.
  uint32_t in_memory(uint32_t v) {
    Value& x = list_[v];
    if (x.memory != UINT32_MAX) return x.memory;
    if (x.kind == Value::kNumber) return x.memory = new_operand({ProgramOperand::kNumber, x.word, x.index});
    if (x.kind == Value::kInput && x.storage == x.word) return x.memory = input_operand_[x.index];
    x.slot = x.memory = take_slot();
    if (now_ == v)
      emit({threaded().keep, nullptr, narrow(x.slot), 0, 0});
    else  // an input of another type
      emit({threaded().widen[x.storage][program_.width], nullptr, narrow(x.slot), narrow(input_operand_[x.index]), 0});
    return x.memory;
  }

  // The accumulator is about to be another one: what is still wanted of it goes to memory.
  void save(uint32_t wanted_besides) {
    if (now_ == PG_VALUE_NONE) return;
    const Value& x = list_[now_];
    if (x.uses > wanted_besides && x.memory == UINT32_MAX && x.kind != Value::kInput) in_memory(now_);
  }

  void bring(uint32_t v) {
    if (now_ == v) return;
    save(0);
    const Value& x = list_[v];
    if (x.kind == Value::kInput && x.memory == UINT32_MAX)
      emit({threaded().load[x.storage][program_.width], nullptr, narrow(input_operand_[x.index]), 0, 0});
    else
      emit({threaded().load[x.word][program_.width], nullptr, narrow(in_memory(v)), 0, 0});
    now_ = v;
  }

  // An output that is an input as it is, over which another output may be stored before.
  void put_aside(uint32_t k, const std::vector<uint32_t>& late) {
    const uint32_t v = values_.of(piece_.raw->outputs[k]);
    Value& x = list_[v];
    if (x.kind != Value::kInput || x.slot != UINT32_MAX) return;
    if (std::none_of(late.begin(), late.end(),
                     [&](uint32_t other) { return other != k && (piece_.raw->overwrites[other] >> x.index & 1u); }))
      return;
    bring(v);
    x.slot = x.memory = take_slot();
    emit({threaded().keep, nullptr, narrow(x.slot), 0, 0});
  }

  void release(uint32_t v) {
    Value& x = list_[v];
    if (x.uses > 0) x.uses--;
    if (x.kind == Value::kInput && input_left_[x.index] > 0) input_left_[x.index]--;
    if (x.uses == 0 && x.slot != UINT32_MAX) {
      free_slots_.push_back(x.slot);
      x.slot = x.memory = UINT32_MAX;
    }
  }

  void compute(uint32_t v) {
    const Value& x = list_[v];
    const Threaded& t = threaded();
    const PrimitiveInfo* info = x.kind == Value::kPrimitive ? &pg::math::info(x.primitive) : nullptr;
    const bool two = info != nullptr && (info->form == pg::math::kBinary || info->form == pg::math::kSlope);
    // The second operand is in the accumulator: better than to put it down and load the first.
    const bool reversed = two && now_ != x.from[0] && now_ == x.from[1];
    const uint32_t first = reversed ? x.from[1] : x.from[0];
    uint32_t memory[2] = {0, 0};
    int further = 0;
    for (int k = 0; k < 3; k++) {
      if (x.from[k] == PG_VALUE_NONE || k == (reversed ? 1 : 0)) continue;
      memory[further++] = in_memory(x.from[k]);
    }
    bring(first);
    uint32_t here = 0;
    for (uint32_t from : x.from) here += from == first;
    save(here);
    switch (x.kind) {
      case Value::kRound: {
        // Nobody but the output wants it, whose store rounds.
        const bool stored = x.uses == 1 && !outputs_[v].empty() && stores_as(v, x.storage);
        if (!stored) emit({t.round[x.storage][program_.width], nullptr, 0, 0, 0});
        break;
      }
      case Value::kToFloat: emit({t.to_float[program_.width], nullptr, 0, 0, 0}); break;
      case Value::kToTruth: emit({t.to_truth[program_.width], nullptr, 0, 0, 0}); break;
      default: {
        const TileHandler run = (reversed ? t.reversed : t.primitive)[x.primitive][x.compute];
        if (run == nullptr) pg::fail(PG_E_INTERNAL, pg::format("there is no step of %s", info->name));
        emit({run, tile_loop(x.primitive, x.compute), narrow(memory[0]), narrow(memory[1]), x.parameters});
      }
    }
    for (uint32_t from : x.from)
      if (from != PG_VALUE_NONE) release(from);
    now_ = v;
  }

  bool stores_as(uint32_t v, Storage storage) const {
    return std::all_of(outputs_[v].begin(), outputs_[v].end(), [&](uint32_t k) {
      return storage_of(piece_.value(piece_.raw->outputs[k])) == storage && may_store(k);
    });
  }
  // Whether none of the inputs that the output may lie over is read later.
  bool may_store(uint32_t k) const {
    const uint64_t mask = piece_.raw->overwrites[k];
    for (uint32_t i = 0; i < input_left_.size() && i < 64; i++)
      if ((mask >> i & 1u) && input_left_[i] > 0) return false;
    return true;
  }
  void store(uint32_t k) {
    const Storage s = storage_of(piece_.value(piece_.raw->outputs[k]));
    const uint16_t to = narrow(output_operand_[k]);
    const Threaded& t = threaded();
    emit({t.store[s][program_.width], nullptr, to, 0, 0}, {t.past[s][program_.width], nullptr, to, 0, 0});
  }

  const pg::Region& piece_;
  Program& program_;
  Values values_;
  std::vector<Value>& list_;
  std::vector<std::vector<uint32_t>> outputs_;  // by value
  std::vector<uint32_t> input_operand_, output_operand_, input_left_, free_slots_;
  uint32_t now_ = PG_VALUE_NONE;  // the value in the accumulator
};

}  // namespace

// ---- nodes ----

namespace {

bool is_role(const pg_op_info& op, const char* role) { return op.role != nullptr && std::strcmp(op.role, role) == 0; }

[[noreturn]] void refuse_step(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s (%s) is no step of a program", call.op(), pg::describe(call).c_str()));
}

// Conversions within words of a width: between floats, of truth values and whole numbers to floats, and to bool.
bool converts(Storage from, Storage to) {
  if (from == to || from == sBool || to == sBool) return true;
  if (width_of(from) != width_of(to)) return false;
  return is_float(to);
}

void check_step(const pg::KernelCall& call, const ScalarStep& step, Storage dtype) {
  const PrimitiveInfo& info = pg::math::info(step.primitive);
  const Storage of = step.of_truth ? sBool : dtype;
  const bool whole = !is_float(of);
  if (step.primitive == pPow || (whole && info.checks != pg::math::kNothing)) refuse_step(call);
  if (of == sBool && info.result == pg::math::kSame && !(info.types & pg::math::kOfBooleans)) refuse_step(call);
  if (whole && pg::math::rounds(step.primitive)) return;
  const int width = width_of(of) == 1 ? 1 : 0;
  if (threaded().primitive[step.primitive][compute_of(!whole, width)] == nullptr) refuse_step(call);
}

}  // namespace

void read_node(const pg::Region& region, uint32_t node, NodeExpression& out) {
  region.describe(node, out.call);
  const pg::KernelCall call(&out.call.call);
  const pg_op_info& op = *call.raw->op;
  require_all_dense(call), refuse_turned(call);
  for (uint32_t i = 0; i < call.input_count(); i++)
    if (call.has(i) && is_float8(storage_of(call.in(i)))) refuse_step(call);
  if (is_float8(storage_of(call.out(0)))) refuse_step(call);
  if (is_role(op, "cast") || is_role(op, "clone")) {
    out.dtype_code = pg::dtype_of(call.in(0));
    out.program = {};
    out.program.result.kind = ScalarOperand::kInput;
  } else {
    if (pg::scalar_expression(op) == nullptr) refuse_step(call);
    const pg::ScalarCall scalar(call);
    out.program = scalar.program;
    out.dtype_code = scalar.dtype;
  }
  out.dtype = storage_of(out.dtype_code);
  if (out.dtype == kStorageCount) refuse_step(call);
  for (int i = 0; i < out.program.count; i++) check_step(call, out.program.step[i], out.dtype);
  const ScalarOperand& last = out.program.result;
  if (last.uniform() || (last.kind == ScalarOperand::kInput && !call.has(last.index))) refuse_step(call);
  const Storage made = last.truth ? sBool : out.dtype, result = storage_of(call.out(0));
  if (!converts(made, result)) refuse_step(call);
}

Program assemble(const pg::Region& piece) {
  Program program;
  Assembler(piece, program).run();
  return program;
}

}  // namespace cpu
