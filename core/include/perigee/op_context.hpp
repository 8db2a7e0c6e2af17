// SPDX-License-Identifier: Apache-2.0
// perigee/op_context.hpp: what the lambdas of an operator's schema receive: ShapeContext, GradContext, ExpandContext.
#pragma once

#include "perigee/functions.hpp"

namespace pg {

// ---- attributes, by name ---------------------------------------------------------------------------------------

// Kinds of attributes as template arguments: attr<Axis>("axis", ...), get<Axis>("axis").
struct Axis {};
struct Axes {};
struct Ints {};
struct Dims {};
struct Dtype {};
struct Choice {};
struct DeviceNumber {};

template <class T>
struct AttrKind;
template <uint32_t number, class Stored, class Given>
struct AttrKindOf {
  static constexpr uint32_t kind = number;
  using stored = Stored;
  using type = Given;
};
template <>
struct AttrKind<bool> : AttrKindOf<PG_ATTR_BOOL, int32_t, bool> {};
template <>
struct AttrKind<int> : AttrKindOf<PG_ATTR_INT, int64_t, int64_t> {};
template <>
struct AttrKind<double> : AttrKindOf<PG_ATTR_FLOAT, double, double> {};
template <>
struct AttrKind<Dtype> : AttrKindOf<PG_ATTR_DTYPE, uint32_t, uint32_t> {};
template <>
struct AttrKind<Choice> : AttrKindOf<PG_ATTR_CHOICE, int32_t, int32_t> {};
template <>
struct AttrKind<Axis> : AttrKindOf<PG_ATTR_AXIS, int64_t, int64_t> {};
template <>
struct AttrKind<Ints> : AttrKindOf<PG_ATTR_INTS, pg_ints, pg_ints> {};
template <>
struct AttrKind<Axes> : AttrKindOf<PG_ATTR_AXES, pg_ints, pg_ints> {};
template <>
struct AttrKind<Dims> : AttrKindOf<PG_ATTR_DIMS, pg_ints, pg_ints> {};
template <>
struct AttrKind<DeviceNumber> : AttrKindOf<PG_ATTR_DEVICE, int32_t, int32_t> {};
template <>
struct AttrKind<pg_number> : AttrKindOf<PG_ATTR_NUMBER, pg_number, pg_number> {};
template <>
struct AttrKind<pg_scalar> : AttrKindOf<PG_ATTR_SCALAR, pg_scalar, pg_scalar> {};

class AttrReader {
 public:
  AttrReader(const pg_op_info& info, const void* attrs)
      : info_(info), attrs_(static_cast<const char*>(attrs == nullptr ? info.defaults : attrs)) {}

  template <class T>
  typename AttrKind<T>::type get(const char* name) const {
    const pg_attr_info& attr = find(name);
    if (attr.kind != AttrKind<T>::kind) wrong_kind(name);
    typename AttrKind<T>::stored value;
    std::memcpy(&value, attrs_ + attr.offset, sizeof value);
    return static_cast<typename AttrKind<T>::type>(value);
  }
  // The number that stands in for an input.
  double number() const;
  const void* data() const { return attrs_; }
  const pg_op_info& info() const { return info_; }

 private:
  const pg_attr_info& find(const char* name) const;
  [[noreturn]] void wrong_kind(const char* name) const;
  const pg_op_info& info_;
  const char* attrs_;
};

// ---- dimensions and shapes -------------------------------------------------------------------------------------

// A size that may be a symbol. Arithmetic on plain numbers is checked here; the host does the rest.
struct Dim {
  int64_t value = 0;
  Dim() = default;
  Dim(int64_t v) : value(v) {}  // NOLINT: a number is a dimension

  bool symbolic() const { return PG_DIM_IS_SYMBOLIC(value); }
  bool is(int64_t number) const { return value == number; }
  // False only where it is known.
  bool may_equal(Dim other) const { return dim_equal(value, other.value); }

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b) { return a + b * Dim(-1); }
  // Rounds down.
  friend Dim operator/(Dim a, Dim b);
  friend Dim max(Dim a, Dim b);
  friend Dim min(Dim a, Dim b) { return Dim(0) - max(Dim(0) - a, Dim(0) - b); }
};

struct Shape {
  uint32_t rank = 0;
  int64_t dims[PG_MAX_RANK] = {};

  Shape() = default;
  Shape(std::initializer_list<Dim> list);
  explicit Shape(const pg_tensor& t);
  explicit Shape(const pg_ints& list);
  Dim operator[](uint32_t i) const { return dims[i]; }
  void push(Dim dim);
  void insert(uint32_t at, Dim dim);
  void erase(uint32_t at);
  Dim count() const;
  bool symbolic() const;
  std::string text() const;
};

// A set of axes of one tensor.
struct AxisSet {
  uint32_t count = 0;
  uint32_t bits = 0;
  bool has(uint32_t axis) const { return (bits >> axis & 1u) != 0; }
};

// Where an axis that counts from the end stands; -1 when it is out of range. A 0-dim tensor has one axis here, as in
// PyTorch: reducing it along axis 0 or -1 is allowed.
int64_t wrap_axis(int64_t axis, uint32_t rank);

pg_ints axis_list(const AxisSet& set);

// ---- shape and dtype rules -------------------------------------------------------------------------------------

// What a rule writes of one output.
class OutputMeta {
 public:
  OutputMeta(pg_meta& meta, const pg_infer& call) : meta_(meta), call_(call) {}
  OutputMeta& operator=(const pg_tensor& like);
  OutputMeta& set(uint32_t dtype, const Shape& shape);
  // The output shows input 0's elements: strides in elements, offset relative to its first. Ignored while symbolic.
  void view(const int64_t* stride, int64_t offset);
  // It cannot be a view of input 0 as that one lies.
  void view_of_copy() { meta_.flags = PG_META_COPY; }

 private:
  pg_meta& meta_;
  const pg_infer& call_;
};

class ShapeContext : public AttrReader {
 public:
  ShapeContext(const pg_infer& call, const pg_op_info& info) : AttrReader(info, call.attrs), call_(call) {}

  bool symbolic() const { return call_.symbolic != 0; }

  // Inputs, by declared position.
  bool has(uint32_t input) const { return group_size(input) > 0 && call_.inputs[first(input)] != nullptr; }
  const pg_tensor& in(uint32_t input) const;
  std::span<const pg_tensor* const> group(uint32_t input) const {
    return {call_.inputs + first(input), group_size(input)};
  }
  Shape shape(uint32_t input) const { return Shape(in(input)); }
  Dim dim(uint32_t input, uint32_t axis) const { return in(input).shape[axis]; }
  uint32_t rank(uint32_t input) const { return in(input).rank; }
  uint32_t dtype(uint32_t input) const { return dtype_of(in(input)); }
  const char* name(uint32_t input) const { return info().inputs[input]->name; }
  std::string text(uint32_t input) const;

  uint32_t output_count() const { return call_.output_count; }
  OutputMeta out(uint32_t output) { return OutputMeta(*call_.outputs[output], call_); }

  // Checks. `need` takes printf's arguments: what was expected, then what came.
  template <class... Args>
  void need(bool condition, const char* pattern, Args... args) const {
    if (!condition) complain(pattern, args...);
  }
  void check_rank(uint32_t input, uint32_t least, uint32_t most = PG_MAX_RANK) const;
  void check_dim(uint32_t input, uint32_t axis, Dim size, const char* why) const;
  void check_same_shape(uint32_t input, uint32_t other) const;
  void check_same_dtype(uint32_t input, uint32_t other) const;
  void check_index(uint32_t input) const;
  // The axis that attribute `attr` names, from 0.
  uint32_t check_axis(const char* attr, uint32_t input) const;
  // The axes that attribute `attr` lists; none means all when `empty_is_all`.
  AxisSet check_axes(const char* attr, uint32_t input, bool empty_is_all = true) const;

 private:
  uint32_t group_size(uint32_t input) const { return call_.groups == nullptr ? 1 : call_.groups[input]; }
  uint32_t first(uint32_t input) const;
  [[noreturn]] static void complain(const char* pattern, ...);
  [[noreturn]] void bad_axis(int64_t axis, uint32_t input) const;
  const pg_infer& call_;
};

// The shape that a and b broadcast to: a constant 1 broadcasts; where a symbol is involved sizes are assumed equal.
Shape broadcast(const Shape& a, const Shape& b);

// ---- gradients and decompositions ------------------------------------------------------------------------------

// Both work on values, by declared position; group() gives the members of a variadic input.
class ValueContext : public AttrReader {
 public:
  ValueContext(const pg_op_info& info, const void* attrs, pg_builder* builder, const pg_value* inputs,
               const uint32_t* groups)
      : AttrReader(info, attrs), builder_(builder), inputs_(inputs), groups_(groups) {}

  pg_builder* builder() const { return builder_; }
  bool has(uint32_t input) const { return in(input).id != 0; }
  Value in(uint32_t input) const;
  std::vector<Value> group(uint32_t input) const;
  // A call of `op` with all attributes that it shares with this operator.
  template <class... Values>
  Value call(const OpRef& op, Values... inputs) const {
    Call call(builder_, op);
    call.copy_attrs(info(), data());
    (call.input(inputs), ...);
    return call.emit();
  }
  uint32_t size(uint32_t input) const { return groups_ == nullptr ? 1 : groups_[input]; }
  uint32_t first(uint32_t input) const;

 private:
  pg_builder* builder_;
  const pg_value* inputs_;
  const uint32_t* groups_;
};

// Where a value is to be written.
class Slot {
 public:
  explicit Slot(pg_value& target) : target_(target) {}
  void operator=(Value value) { target_ = value.id; }

 private:
  pg_value& target_;
};

class GradContext : public ValueContext {
 public:
  GradContext(const pg_grad& call, const pg_op_info& info)
      : ValueContext(info, call.attrs, call.builder, call.inputs, call.groups), call_(call) {}

  Value out(uint32_t output) const { return {builder(), call_.outputs[output]}; }
  // What flowed back into an output; absent where nothing did.
  Value dout(uint32_t output) const { return {builder(), call_.cotangents[output]}; }
  uint32_t output_count() const { return call_.output_count; }
  bool needed(uint32_t input) const;
  Slot din(uint32_t input) { return Slot(call_.gradients[first(input)]); }
  // The k-th member of a variadic input.
  bool needed(uint32_t input, uint32_t k) const { return call_.needed[first(input) + k] != 0; }
  Slot din(uint32_t input, uint32_t k) { return Slot(call_.gradients[first(input) + k]); }

 private:
  const pg_grad& call_;
};

class ExpandContext : public ValueContext {
 public:
  ExpandContext(const pg_expand& call, const pg_op_info& info)
      : ValueContext(info, call.attrs, call.builder, call.inputs, call.groups), call_(call) {}
  Slot out(uint32_t output) { return Slot(call_.outputs[output]); }
  uint32_t output_count() const { return call_.output_count; }

 private:
  const pg_expand& call_;
};

}  // namespace pg
