// SPDX-License-Identifier: Apache-2.0
// Reading scalar expressions.
#include "perigee/scalar.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>

namespace pg {
namespace {

constexpr size_t kMaxNodes = 128;
constexpr int kMaxDepth = 32;

// The letters by which two names differ, as far as it matters for a hint.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t k = 0; k <= b.size(); k++) row[k] = k;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t k = 1; k <= b.size(); k++) {
      const bool same = std::tolower(a[i - 1]) == std::tolower(b[k - 1]);
      const size_t changed = corner + (same ? 0 : 1);
      corner = row[k];
      row[k] = std::min({row[k] + 1, row[k - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

// "; did you mean Sigmoid?", or nothing where no name is near.
std::string hint(const std::string& name, const std::vector<std::string>& known) {
  size_t best = std::max<size_t>(1, name.size() / 3) + 1;
  std::string nearest;
  for (const std::string& other : known) {
    const size_t off = distance(name, other);
    if (off < best) best = off, nearest = other;
  }
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

bool is_number_kind(uint32_t kind) {
  return kind == PG_ATTR_FLOAT || kind == PG_ATTR_INT || kind == PG_ATTR_BOOL || kind == PG_ATTR_CHOICE ||
         kind == PG_ATTR_NUMBER;
}

}  // namespace

class ScalarParser {
 public:
  using Node = ScalarExpression::Node;
  ScalarParser(const pg_op_info& op, ScalarExpression& to) : op_(op), text_(op.scalar), to_(to) {}

  void run() {
    if ((op_.traits & PG_OP_ELEMENTWISE) == 0 || op_.output_count != 1 || op_.input_count > 32)
      bad("only elementwise operators with one output and up to 32 inputs have one");
    to_.root_ = expression(0);
    skip();
    if (at_ < text_.size()) bad(format("unexpected '%c' behind the expression", text_[at_]));
    if (node(to_.root_).uniform) bad("the result is the same for all elements; expected one of inputs");
    for (uint32_t i = 0; i < op_.input_count; i++)
      if ((used_ >> i & 1u) == 0 && (op_.inputs[i]->flags & (PG_INPUT_META | PG_INPUT_CONDITION)) == 0)
        bad(std::string("input '") + op_.inputs[i]->name + "' is not used");
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail_argument(format("operator '%s': scalar expression \"%s\", column %zu: %s", op_.name, text_.c_str(), at_ + 1,
                         what.c_str()));
  }
  [[noreturn]] void bad(size_t column, const std::string& what) {
    at_ = column;
    bad(what);
  }
  const Node& node(int i) const { return to_.nodes_[static_cast<size_t>(i)]; }
  int add(const Node& made) {
    if (to_.nodes_.size() == kMaxNodes) bad(format("more than %zu parts", kMaxNodes));
    to_.nodes_.push_back(made);
    return static_cast<int>(to_.nodes_.size()) - 1;
  }

  // ---- letters ----

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  std::string found() const { return at_ < text_.size() ? format("'%c'", text_[at_]) : std::string("the end"); }
  void expect(char c) {
    if (!take(c)) bad(format("expected '%c', found %s", c, found().c_str()));
  }
  static bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  bool name_ahead() {
    skip();
    return at_ < text_.size() && is_letter(text_[at_]);
  }
  std::string name() {
    size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0))
      at_++;
    return text_.substr(begin, at_ - begin);
  }
  bool number_ahead() {
    skip();
    return at_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '-' || text_[at_] == '.');
  }
  ScalarOperand number() {
    const char* begin = text_.data() + at_;
    double value = 0;
    auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);  // strtod asks the locale
    if (code != std::errc()) bad("expected a number, found " + found());
    at_ += static_cast<size_t>(end - begin);
    return {ScalarOperand::kNumber, false, 0, value};
  }

  // ---- names ----

  int find_input(const std::string& name) const {
    for (uint32_t i = 0; i < op_.input_count; i++)
      if (name == op_.inputs[i]->name) return static_cast<int>(i);
    return -1;
  }
  int find_attribute(const std::string& name) const {
    for (uint32_t i = 0; i < op_.attr_count; i++)
      if (name == op_.attrs[i]->name) return static_cast<int>(i);
    return -1;
  }
  ScalarOperand attribute(const std::string& name, size_t column) {
    const int i = find_attribute(name);
    if (i < 0) {
      std::vector<std::string> known;
      for (uint32_t k = 0; k < op_.attr_count; k++) known.push_back(op_.attrs[k]->name);
      for (uint32_t k = 0; k < op_.input_count; k++) known.push_back(op_.inputs[k]->name);
      bad(column, "'" + name + "' is neither an input nor an attribute" + hint(name, known));
    }
    if (!is_number_kind(op_.attrs[i]->kind)) bad(column, "attribute '" + name + "' is no number");
    return {ScalarOperand::kAttribute, false, static_cast<uint16_t>(i), 0};
  }

  // ---- the grammar ----

  int leaf(const ScalarOperand& operand) {
    Node made;
    made.leaf = operand;
    made.truth = operand.truth;
    made.uniform = operand.uniform();
    return add(made);
  }

  int input(int i, size_t column) {
    const pg_input_info& info = *op_.inputs[i];
    if ((info.flags & PG_INPUT_VARIADIC) != 0) bad(column, std::string("input '") + info.name + "' is a list");
    if ((info.flags & PG_INPUT_META) != 0)
      bad(column, std::string("input '") + info.name + "' has no contents here: only its shape and dtype are read");
    used_ |= 1u << i;
    const bool truth = info.dtypes == PG_M_BOOL;
    if (truth) to_.truth_inputs_ |= 1u << i;
    return leaf({ScalarOperand::kInput, truth, static_cast<uint16_t>(i), 0});
  }

  int expression(int depth) {
    if (depth > kMaxDepth) bad(format("more than %d calls deep", kMaxDepth));
    if (number_ahead()) return leaf(number());
    if (!name_ahead()) bad("expected an input, a number or a primitive, found " + found());
    const size_t column = at_;
    const std::string word = name();
    if (take('(')) return call(word, column, depth);
    if (take('?')) return condition(word, column, depth);
    if (const int i = find_input(word); i >= 0) return input(i, column);
    return leaf(attribute(word, column));
  }

  int condition(const std::string& word, size_t column, int depth) {
    Node made;
    made.kind = Node::kCondition;
    made.attribute = attribute(word, column).index;
    const pg_attr_info& info = *op_.attrs[made.attribute];
    if ((info.flags & PG_ATTR_RUNTIME) != 0)
      bad(column, "attribute '" + word + "' is a runtime one: a condition is decided before the call");
    if (info.kind == PG_ATTR_FLOAT || info.kind == PG_ATTR_NUMBER)
      bad(column, "attribute '" + word + "' is no condition; expected a bool, a choice or a whole number");
    made.child[0] = expression(depth + 1);
    expect(':');
    made.child[1] = expression(depth + 1);
    const Node &yes = node(made.child[0]), &no = node(made.child[1]);
    if (yes.truth != no.truth && !yes.uniform && !no.uniform)
      bad(column, "one way gives a truth value and the other a number");
    made.truth = yes.truth || no.truth;
    made.uniform = yes.uniform && no.uniform;
    if (yes.uniform != no.uniform) bad(column, "one way gives the same for all elements and the other does not");
    return add(made);
  }

  math::Primitive primitive(const std::string& word, size_t column) {
    std::vector<std::string> known;
    for (const math::PrimitiveInfo& row : math::kPrimitives) {
      if (word == row.name) return static_cast<math::Primitive>(row.number);
      known.push_back(row.name);
    }
    bad(column, "there is no primitive '" + word + "'" + hint(word, known));
  }

  int call(const std::string& word, size_t column, int depth) {
    Node made;
    made.kind = Node::kPrimitive;
    made.primitive = primitive(word, column);
    const math::PrimitiveInfo& info = math::info(made.primitive);
    const int wanted = math::operands(info.form);
    int count = 0;
    do {
      const int child = expression(depth + 1);
      if (count < wanted) made.child[count] = child;
      count++;
    } while (take(','));
    if (take(';')) {
      do {
        skip();
        if (made.parameters == math::kMaxParameters) bad(word + " has too many parameters");
        made.parameter[made.parameters++] = parameter();
      } while (take(','));
    }
    expect(')');
    if (count != wanted) bad(column, format("%s has %d operand%s; expected %d", info.name, count, s(count), wanted));
    if (made.parameters != info.parameters) {
      bad(column, format("%s has %d parameter%s; expected %d", info.name, made.parameters, s(made.parameters),
                         info.parameters));
    }
    set_types(made, info, column);
    return add(made);
  }
  static const char* s(int count) { return count == 1 ? "" : "s"; }

  ScalarOperand parameter() {
    if (number_ahead()) return number();
    if (!name_ahead()) bad("expected an attribute or a number, found " + found());
    const size_t column = at_;
    const std::string word = name();
    if (find_input(word) >= 0) bad(column, "'" + word + "' is an input; a parameter is an attribute or a number");
    return attribute(word, column);
  }

  void set_types(Node& made, const math::PrimitiveInfo& info, size_t column) {
    const bool chooses = info.form == math::kChoice;
    if (chooses && !node(made.child[0]).truth)
      bad(column, "what Select looks at first is no truth value (a bool input, a comparison or a predicate)");
    bool any = false, numbers = false, uniform = false;
    for (int i = chooses ? 1 : 0; i < math::operands(info.form); i++) {
      const Node& child = node(made.child[i]);
      uniform = uniform || child.uniform;
      any = any || !child.uniform;
      numbers = numbers || (!child.uniform && !child.truth);
    }
    if (!any) bad(column, std::string(info.name) + " is given numbers only; expected an input among its operands");
    made.of_truth = !numbers;
    if (made.of_truth && uniform)
      bad(column, std::string(info.name) + " is given a number beside truth values, which have no dtype of numbers");
    if (made.of_truth && (info.types & math::kOfBooleans) == 0)
      bad(column, std::string(info.name) + " takes no truth values");
    made.truth = info.result == math::kTruth || made.of_truth;
  }

  const pg_op_info& op_;
  std::string text_;
  size_t at_ = 0;
  uint32_t used_ = 0;
  ScalarExpression& to_;
};

ScalarExpression::ScalarExpression(const pg_op_info& op) : op_(&op) { ScalarParser(op, *this).run(); }

// ---- programs ----

namespace {

bool is_true(const pg_attr_info& info, const void* attrs) {
  return read_attr<int64_t>(attrs, info.kind, info.offset) != 0;
}

bool same_step(const ScalarStep& a, const ScalarStep& b) {
  return a.primitive == b.primitive && a.of_truth == b.of_truth && std::equal(a.operand, a.operand + 3, b.operand) &&
         std::equal(a.parameter, a.parameter + math::kMaxParameters, b.parameter);
}

// The position behind which a step's result is not read any more.
int last_reader(const ScalarProgram& program, int step) {
  auto reads = [step](const ScalarOperand& o) { return o.kind == ScalarOperand::kStep && o.index == step; };
  if (reads(program.result)) return program.count;
  int last = step;
  for (int i = step + 1; i < program.count; i++) {
    const ScalarStep& each = program.step[i];
    if (std::any_of(each.operand, each.operand + each.operands, reads)) last = i;
  }
  return last;
}

void give_slots(ScalarProgram& program) {
  for (int i = 0; i < program.count; i++) {
    uint32_t taken = 0;
    for (int k = 0; k < i; k++)
      if (last_reader(program, k) >= i) taken |= 1u << program.step[k].slot;
    uint8_t slot = 0;
    while ((taken >> slot & 1u) != 0) slot++;
    program.step[i].slot = slot;
    program.slots = std::max(program.slots, slot + 1);
  }
}

}  // namespace

ScalarOperand ScalarExpression::emit(int at, const void* attrs, bool booleans, ScalarProgram& program) const {
  const Node& node = nodes_[static_cast<size_t>(at)];
  if (node.kind == Node::kLeaf) return node.leaf;
  if (node.kind == Node::kCondition)
    return emit(node.child[is_true(*op_->attrs[node.attribute], attrs) ? 0 : 1], attrs, booleans, program);
  ScalarStep step;
  step.primitive = booleans || node.of_truth ? math::of_booleans(node.primitive) : node.primitive;
  step.of_truth = node.of_truth;
  step.truth = node.truth;
  step.operands = static_cast<uint8_t>(math::operands(math::info(node.primitive).form));
  step.parameters = node.parameters;
  std::copy_n(node.parameter, math::kMaxParameters, step.parameter);
  for (int i = 0; i < step.operands; i++) step.operand[i] = emit(node.child[i], attrs, booleans, program);
  int place = 0;
  while (place < program.count && !same_step(program.step[place], step)) place++;
  if (place == program.count) {
    if (place == kMaxScalarSteps)
      fail_support(format("operator '%s': its scalar expression has more than %d steps", op_->name, kMaxScalarSteps));
    program.step[program.count++] = step;
  }
  return {ScalarOperand::kStep, node.truth, static_cast<uint16_t>(place), 0};
}

ScalarProgram ScalarExpression::program(const void* attrs, bool booleans) const {
  ScalarProgram program;
  program.result = emit(root_, attrs, booleans, program);
  give_slots(program);
  return program;
}

// ---- calls ----

const ScalarExpression* scalar_expression(const pg_op_info& op) {
  if (!PG_HAS(&op, pg_op_info, scalar) || op.scalar == nullptr) return nullptr;
  static std::mutex mutex;
  // Schemas live as long as the process, and so do what was read of them. By the text too, for hosts that reuse memory.
  static auto& known =
      *new std::map<std::pair<const pg_op_info*, const char*>, std::unique_ptr<const ScalarExpression>>;
  std::lock_guard guard(mutex);
  auto [at, fresh] = known.try_emplace({&op, op.scalar});
  if (fresh) {
    try {
      at->second = std::make_unique<const ScalarExpression>(op);
    } catch (const Error&) {  // stays NULL: the schema's own plugin has said what is wrong, if anything is
    }
  }
  return at->second.get();
}

ScalarCall::ScalarCall(const KernelCall& call) {
  const pg_op_info& op = *call.raw->op;
  const ScalarExpression* known = scalar_expression(op);
  if (known == nullptr) fail_support(format("the scalar expression of %s is of a kind that came later", op.name));
  uint32_t flat = 0;
  for (uint32_t i = 0; i < op.input_count; i++, flat += call.group(i - 1)) {
    if (!call.has(flat) || (op.inputs[i]->flags & (PG_INPUT_META | PG_INPUT_CONDITION)) != 0) continue;
    const uint32_t of = dtype_of(call.in(flat));
    if ((known->truth_inputs() >> i & 1u) != 0) {
      if (of != PG_B8) fail_support(format("%s takes bool for %s", op.name, op.inputs[i]->name));
      continue;
    }
    if (dtype != 0 && of != dtype)
      fail_support(format("%s takes operands of one dtype; got %s", op.name, call.arguments().c_str()));
    dtype = of;
  }
  if (dtype == 0) dtype = known->truth_inputs() != 0 ? PG_B8 : dtype_of(call.out(0));
  program = known->program(call.raw->attrs, dtype == PG_B8);
}

ScalarNumber::ScalarNumber(const KernelCall& call, const ScalarOperand& operand) {
  const pg_op_info& op = *call.raw->op;
  if (operand.kind == ScalarOperand::kInput) {
    Runtime<pg_number> value = call.scalar_value();
    given_ = true, kind_ = value.kind, offset_ = value.offset;
  } else if (operand.kind == ScalarOperand::kAttribute) {
    given_ = true, kind_ = op.attrs[operand.index]->kind, offset_ = op.attrs[operand.index]->offset;
  } else {
    number_ = make_number(operand.number);
  }
}

pg_number ScalarNumber::operator()(const void* attrs) const {
  return given_ ? read_attr<pg_number>(attrs, kind_, offset_) : number_;
}

}  // namespace pg
