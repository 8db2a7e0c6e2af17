// SPDX-License-Identifier: Apache-2.0
// From an OpBuilder to the tables of plugin.h.
#include "perigee/op.hpp"

#include "perigee/scalar.hpp"

#include <deque>

namespace pg {

// ---- declaring ----

OpBuilder::OpBuilder(std::string_view name) : name_(name) {}
OpBuilder::~OpBuilder() = default;

namespace {

std::deque<OpBuilder>& declared_ops() {
  static std::deque<OpBuilder> ops;
  return ops;
}

}  // namespace

OpBuilder& declare_op(std::string_view name) { return declared_ops().emplace_back(name); }

OpTable::OpTable() {
  for (OpBuilder& op : declared_ops()) infos_.push_back(op.build());
  table_ = {PG_SIZE(pg_ops, ops), static_cast<uint32_t>(infos_.size()), infos_.data()};
}

OpBuilder& OpBuilder::doc(std::string_view text) {
  doc_ = text;
  return *this;
}
OpBuilder& OpBuilder::input(const char* name, uint32_t dtypes, const char* doc, uint32_t flags) {
  inputs_.push_back({PG_SIZE(pg_input_info, written_if), flags, dtypes, 0, name, doc, nullptr});
  return *this;
}
OpBuilder& OpBuilder::written_if(const char* attr) {
  inputs_.back().written_if = attr;
  return *this;
}
OpBuilder& OpBuilder::output(const char* name, const char* doc, uint32_t flags, uint32_t like) {
  outputs_.push_back({PG_SIZE(pg_output_info, doc), flags, like, 0, name, doc});
  return *this;
}
OpBuilder& OpBuilder::add_attr(uint32_t kind, const char* name, const void* value, uint32_t bytes, const char* doc) {
  Attr& a = attrs_.emplace_back();
  a.info = {PG_SIZE(pg_attr_info, value), kind, 0, 0, name, doc, nullptr, 0, 0};
  a.bytes = bytes;
  std::memcpy(a.value, value, bytes);
  return *this;
}
OpBuilder& OpBuilder::choice(const char* name, std::initializer_list<const char*> names, int32_t value,
                             const char* doc) {
  attr<Choice>(name, value, doc);
  attrs_.back().choices = names;
  return *this;
}
OpBuilder& OpBuilder::scalar() {
  attr<pg_scalar>("scalar", {}, "a number in place of an input");
  return attr<pg_number>("value", {}, "the number").runtime().internal();
}
OpBuilder& OpBuilder::random() {
  effect_ = PG_EFFECT_RANDOM;
  attr<int>("seed", 0, "filled by the host").runtime().internal();
  return attr<int>("offset", 0, "filled by the host").runtime().internal();
}
OpBuilder& OpBuilder::flag(uint32_t flag) {
  attrs_.back().info.flags |= flag;
  return *this;
}
OpBuilder& OpBuilder::add_saved(std::initializer_list<const char*> names) {
  saved_.insert(saved_.end(), names);
  return *this;
}
void OpBuilder::bad(const std::string& what) const { fail(PG_E_INTERNAL, "operator " + name_ + ": " + what); }

// ---- building ----

// Static attributes first, then runtime ones, each on 8 bytes.
void OpBuilder::lay_out() {
  uint32_t end = 0;
  for (uint32_t runtime : {0u, PG_ATTR_RUNTIME}) {
    for (Attr& a : attrs_) {
      if ((a.info.flags & PG_ATTR_RUNTIME) != runtime) continue;
      a.info.offset = end;
      end += (a.bytes + 7) / 8 * 8;
      a.info.choices = a.choices.empty() ? nullptr : a.choices.data();
      a.info.choice_count = static_cast<uint32_t>(a.choices.size());
    }
    if (runtime == 0) info_.static_size = end;
  }
  info_.attr_size = end;
  defaults_.assign(end / 8, 0);
  for (Attr& a : attrs_) std::memcpy(reinterpret_cast<char*>(defaults_.data()) + a.info.offset, a.value, a.bytes);
  for (Attr& a : attrs_) {
    if (a.info.kind != PG_ATTR_SCALAR) continue;
    for (Attr& number : attrs_)
      if (std::strcmp(number.info.name, "value") == 0) a.info.value = number.info.offset;
  }
}

void OpBuilder::resolve_saved() {
  for (const char* name : saved_) {
    bool found = false;
    for (size_t i = 0; i < inputs_.size(); i++) {
      if (std::strcmp(inputs_[i].name, name) != 0) continue;
      info_.saved_inputs |= uint64_t{1} << i;
      found = true;
    }
    for (size_t i = 0; i < outputs_.size(); i++) {
      if (std::strcmp(outputs_[i].name, name) != 0) continue;
      info_.saved_outputs |= uint64_t{1} << i;
      found = true;
    }
    if (!found) bad(std::string("saves '") + name + "', which is neither an input nor an output");
  }
}

void OpBuilder::check() const {
  if (doc_.empty()) bad("has no documentation");
  if (!shape_) bad("has no shape rule");
  if (inputs_.size() > 16) bad("more than 16 inputs");
  bool hidden = false;
  for (const pg_output_info& o : outputs_) {
    if (hidden && (o.flags & PG_OUTPUT_HIDDEN) == 0) bad("hidden outputs come last");
    hidden = (o.flags & PG_OUTPUT_HIDDEN) != 0;
    if ((o.flags & PG_OUTPUT_VARIADIC) != 0 && o.like >= inputs_.size()) bad("an output follows an input it lacks");
  }
  for (size_t i = 0; i < attrs_.size(); i++)
    for (size_t k = 0; k < i; k++)
      if (std::strcmp(attrs_[i].info.name, attrs_[k].info.name) == 0)
        bad(std::string("attribute '") + attrs_[i].info.name + "' is declared twice");
  if (grad_ && (traits_ & PG_OP_NO_GRAD) != 0) bad("has a gradient and is declared without one");
}

const pg_op_info* OpBuilder::build() {
  check();
  info_ = {};
  lay_out();
  resolve_saved();
  input_table_.clear();
  output_table_.clear();
  attr_table_.clear();
  for (const pg_input_info& i : inputs_) input_table_.push_back(&i);
  for (const pg_output_info& o : outputs_) output_table_.push_back(&o);
  for (const Attr& a : attrs_) attr_table_.push_back(&a.info);
  info_.size = PG_SIZE(pg_op_info, scalar);
  info_.traits = traits_;
  info_.effect = effect_;
  info_.numeric = numeric_;
  info_.name = name_.c_str();
  info_.doc = doc_.c_str();
  info_.category = category_;
  info_.role = role_;
  info_.input_count = static_cast<uint32_t>(inputs_.size());
  info_.output_count = static_cast<uint32_t>(outputs_.size());
  info_.attr_count = static_cast<uint32_t>(attrs_.size());
  info_.inputs = input_table_.data();
  info_.outputs = output_table_.data();
  info_.attrs = attr_table_.data();
  info_.defaults = defaults_.data();
  info_.user = this;
  info_.infer = infer;
  info_.grad = grad_ ? run_grad : nullptr;
  info_.decompose = decompose_ ? run_decompose : nullptr;
  info_.write_back = write_back_ ? run_write_back : nullptr;
  info_.scalar = expression_;
  if (expression_ != nullptr) ScalarExpression{info_};  // throws what is wrong with it
  return &info_;
}

std::string dtype_mask_text(uint32_t mask) {
  std::string text;
  const char* names[] = {"bool", "integer", "floating", "complex", "float8"};
  for (uint32_t i = 0; i < 5; i++) {
    if ((mask >> i & 1u) == 0) continue;
    if (!text.empty()) text += " or ";
    text += names[i];
  }
  return text;
}

void OpBuilder::check_inputs(const ShapeContext& c) const {
  bool scalar = false;
  for (const Attr& a : attrs_) scalar = scalar || a.info.kind == PG_ATTR_SCALAR;
  pg_scalar number = scalar ? c.get<pg_scalar>("scalar") : pg_scalar{};
  for (uint32_t i = 0; i < inputs_.size(); i++) {
    const pg_input_info& input = inputs_[i];
    bool stands_in = number.kind != PG_SCALAR_NONE && number.input == static_cast<int32_t>(i);
    for (const pg_tensor* t : c.group(i)) {
      if (t == nullptr) {
        if ((input.flags & PG_INPUT_OPTIONAL) == 0 || (scalar && (input.flags & PG_INPUT_PROMOTE) != 0 && !stands_in))
          fail_argument(format("%s is missing", input.name));
        continue;
      }
      if (stands_in) fail_argument(format("%s is given both as a tensor and as a number", input.name));
      if ((input.dtypes & dtype_class(dtype_of(*t))) == 0)
        fail_argument(format("%s is %s; expected %s", input.name, dtype_name(dtype_of(*t)),
                             dtype_mask_text(input.dtypes).c_str()));
    }
  }
}

int32_t OpBuilder::infer(const pg_infer* call, pg_error* error) noexcept {
  const auto& op = *static_cast<const OpBuilder*>(call->user);
  return guard(error, op.name_.c_str(), [&] {
    ShapeContext context(*call, op.info_);
    op.check_inputs(context);
    op.shape_(context);
  });
}

int32_t OpBuilder::run_grad(const pg_grad* call, pg_error* error) noexcept {
  const auto& op = *static_cast<const OpBuilder*>(call->user);
  return guard(error, op.name_.c_str(), [&] {
    GradContext context(*call, op.info_);
    op.grad_(context);
  });
}

int32_t OpBuilder::run_decompose(const pg_expand* call, pg_error* error) noexcept {
  const auto& op = *static_cast<const OpBuilder*>(call->user);
  return guard(error, op.name_.c_str(), [&] {
    ExpandContext context(*call, op.info_);
    op.decompose_(context);
  });
}

int32_t OpBuilder::run_write_back(const pg_expand* call, pg_error* error) noexcept {
  const auto& op = *static_cast<const OpBuilder*>(call->user);
  return guard(error, op.name_.c_str(), [&] {
    ExpandContext context(*call, op.info_);
    op.write_back_(context);
  });
}

}  // namespace pg
