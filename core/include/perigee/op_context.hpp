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
struct AttrKind<pg_scalar> : AttrKindOf<PG_ATTR_SCALAR, pg_scalar, pg_scalar> {};

class AttrReader {
 public:
  AttrReader(const pg_op_info& info, const void* attrs)
      : info_(info), attrs_(static_cast<const char*>(attrs == nullptr ? info.defaults : attrs)) {}

  template <class T>
  typename AttrKind<T>::type get(const char* name) const {
    const pg_attr_info& attr = find(name);
    if (attr.kind != AttrKind<T>::kind) fail(PG_E_INTERNAL, format("%s.%s has another kind", info_.name, name));
    typename AttrKind<T>::stored value;
    std::memcpy(&value, attrs_ + attr.offset, sizeof value);
    return static_cast<typename AttrKind<T>::type>(value);
  }
  // The number that stands in for an input.
  double number() const {
    double value;
    std::memcpy(&value, attrs_ + find("scalar").value, sizeof value);
    return value;
  }
  const void* data() const { return attrs_; }
  const pg_op_info& info() const { return info_; }

 private:
  const pg_attr_info& find(const char* name) const {
    for (uint32_t i = 0; i < info_.attr_count; i++)
      if (info_.attrs[i]->name == name || std::strcmp(info_.attrs[i]->name, name) == 0) return *info_.attrs[i];
    fail(PG_E_INTERNAL, format("%s has no attribute '%s'", info_.name, name));
  }
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

  friend Dim operator+(Dim a, Dim b) {
    int64_t r;
    if (a.symbolic() || b.symbolic()) return dim_add(a.value, b.value);
    if (__builtin_add_overflow(a.value, b.value, &r)) overflow();
    return r;
  }
  friend Dim operator*(Dim a, Dim b) {
    int64_t r;
    if (a.is(1)) return b;
    if (b.is(1)) return a;
    if (a.symbolic() || b.symbolic()) return dim_mul(a.value, b.value);
    if (__builtin_mul_overflow(a.value, b.value, &r)) overflow();
    return r;
  }
  friend Dim operator-(Dim a, Dim b) { return a + b * Dim(-1); }
  // Rounds down.
  friend Dim operator/(Dim a, Dim b) {
    if (b.is(1)) return a;
    if (a.symbolic() || b.symbolic()) return dim_div(a.value, b.value);
    if (b.value <= 0) fail_argument(format("a size cannot be divided by %lld", static_cast<long long>(b.value)));
    return a.value >= 0 ? a.value / b.value : -((-a.value + b.value - 1) / b.value);
  }
  friend Dim max(Dim a, Dim b) {
    if (a.symbolic() || b.symbolic()) return dim_max(a.value, b.value);
    return std::max(a.value, b.value);
  }
  friend Dim min(Dim a, Dim b) { return Dim(0) - max(Dim(0) - a, Dim(0) - b); }

  [[noreturn]] static void overflow() { fail_argument("the size overflows a 64-bit integer"); }
};

struct Shape {
  uint32_t rank = 0;
  int64_t dims[PG_MAX_RANK] = {};

  Shape() = default;
  Shape(std::initializer_list<Dim> list) {
    for (Dim dim : list) push(dim);
  }
  explicit Shape(const pg_tensor& t) : rank(t.rank) { std::copy_n(t.shape, t.rank, dims); }
  explicit Shape(const pg_ints& list) {
    for (int64_t i = 0; i < list.count; i++) push(list.value[i]);
  }
  Dim operator[](uint32_t i) const { return dims[i]; }
  void push(Dim dim) {
    if (rank == PG_MAX_RANK) fail_argument(format("more than %d axes", PG_MAX_RANK));
    dims[rank++] = dim.value;
  }
  void insert(uint32_t at, Dim dim) {
    push(0);
    for (uint32_t i = rank - 1; i > at; i--) dims[i] = dims[i - 1];
    dims[at] = dim.value;
  }
  void erase(uint32_t at) {
    rank--;
    for (uint32_t i = at; i < rank; i++) dims[i] = dims[i + 1];
  }
  Dim count() const {
    Dim product = 1;
    for (uint32_t i = 0; i < rank; i++) {
      if (dims[i] == 0) return 0;
      product = product * Dim(dims[i]);
    }
    return product;
  }
  bool symbolic() const {
    return std::any_of(dims, dims + rank, [](int64_t d) { return PG_DIM_IS_SYMBOLIC(d); });
  }
  std::string text() const {
    pg_tensor t{};
    t.rank = rank;
    t.shape = dims;
    return shape_text(t);
  }
};

// A set of axes of one tensor.
struct AxisSet {
  uint32_t count = 0;
  uint32_t bits = 0;
  bool has(uint32_t axis) const { return (bits >> axis & 1u) != 0; }
};

// Where an axis that counts from the end stands; -1 when it is out of range. A 0-dim tensor has one axis here, as in
// PyTorch: reducing it along axis 0 or -1 is allowed.
inline int64_t wrap_axis(int64_t axis, uint32_t rank) {
  int64_t n = rank == 0 ? 1 : rank;
  if (axis < -n || axis >= n) return -1;
  return axis < 0 ? axis + n : axis;
}

inline pg_ints axis_list(const AxisSet& set) {
  pg_ints out{};
  for (uint32_t i = 0; i < PG_MAX_RANK; i++)
    if (set.has(i)) out.value[out.count++] = i;
  return out;
}

// ---- shape and dtype rules -------------------------------------------------------------------------------------

// What a rule writes of one output.
class OutputMeta {
 public:
  OutputMeta(pg_meta& meta, const pg_infer& call) : meta_(meta), call_(call) {}
  OutputMeta& operator=(const pg_tensor& like) { return set(dtype_of(like), Shape(like)); }
  OutputMeta& set(uint32_t dtype, const Shape& shape) {
    for (uint32_t i = 0; i < shape.rank; i++) {
      if (!shape[i].symbolic() && shape.dims[i] < 0)
        fail_argument(format("the size %lld of axis %u is negative", static_cast<long long>(shape.dims[i]), i + 1));
    }
    static_cast<void>(shape.count() * Dim(dtype_bytes(dtype)));
    meta_.flags = 0;
    meta_.dtype_code = static_cast<uint16_t>(dtype >> 16);
    meta_.dtype_bits = static_cast<uint16_t>(dtype & 0xffffu);
    meta_.rank = shape.rank;
    std::copy_n(shape.dims, shape.rank, meta_.shape);
    return *this;
  }
  // The output shows input 0's elements: strides in elements, offset relative to its first. Ignored while symbolic.
  void view(const int64_t* stride, int64_t offset) {
    if (call_.symbolic != 0) return;
    meta_.flags = PG_META_VIEW;
    std::copy_n(stride, meta_.rank, meta_.stride);
    meta_.offset = offset;
  }
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
  const pg_tensor& in(uint32_t input) const {
    if (!has(input)) fail_argument(format("%s is missing", name(input)));
    return *call_.inputs[first(input)];
  }
  std::span<const pg_tensor* const> group(uint32_t input) const {
    return {call_.inputs + first(input), group_size(input)};
  }
  Shape shape(uint32_t input) const { return Shape(in(input)); }
  Dim dim(uint32_t input, uint32_t axis) const { return in(input).shape[axis]; }
  uint32_t rank(uint32_t input) const { return in(input).rank; }
  uint32_t dtype(uint32_t input) const { return dtype_of(in(input)); }
  const char* name(uint32_t input) const { return info().inputs[input]->name; }
  std::string text(uint32_t input) const {
    std::string text = name(input);  // not `" " + ...`: g++ 12 warns of an overlap that is none
    return text.append(" ").append(shape_text(in(input)));
  }

  uint32_t output_count() const { return call_.output_count; }
  OutputMeta out(uint32_t output) { return OutputMeta(*call_.outputs[output], call_); }

  // Checks. `need` takes printf's arguments: what was expected, then what came.
  template <class... Args>
  void need(bool condition, const char* pattern, Args... args) const {
    if (!condition) complain(pattern, args...);
  }
  void check_rank(uint32_t input, uint32_t least, uint32_t most = PG_MAX_RANK) const {
    uint32_t rank = this->rank(input);
    if (rank >= least && rank <= most) return;
    std::string want = least == most         ? format("%u axes", least)
                       : most == PG_MAX_RANK ? format("at least %u axes", least)
                                             : format("%u to %u axes", least, most);
    if (want == "1 axes" || want == "at least 1 axes") want.replace(want.size() - 4, 4, "axis");
    fail_argument(format("%s has %u axes; expected %s", text(input).c_str(), rank, want.c_str()));
  }
  void check_dim(uint32_t input, uint32_t axis, Dim size, const char* why) const {
    if (dim(input, axis).may_equal(size)) return;
    fail_argument(format("%s: axis %u is %lld; expected %lld, %s", text(input).c_str(), axis + 1,
                         static_cast<long long>(dim(input, axis).value), static_cast<long long>(size.value), why));
  }
  void check_same_shape(uint32_t input, uint32_t other) const {
    bool same = rank(input) == rank(other);
    for (uint32_t i = 0; same && i < rank(input); i++) same = dim(input, i).may_equal(dim(other, i));
    if (!same) fail_argument(format("%s must have the shape of %s", text(input).c_str(), text(other).c_str()));
  }
  void check_same_dtype(uint32_t input, uint32_t other) const {
    if (dtype(input) == dtype(other)) return;
    fail_argument(format("%s is %s; expected %s, the dtype of %s", name(input), dtype_name(dtype(input)),
                         dtype_name(dtype(other)), name(other)));
  }
  void check_index(uint32_t input) const {
    uint32_t d = dtype(input);
    need(d == PG_I64 || d == PG_I32, "%s is %s; expected int64 or int32", name(input), dtype_name(d));
  }
  // The axis that attribute `attr` names, from 0.
  uint32_t check_axis(const char* attr, uint32_t input) const {
    int64_t axis = get<Axis>(attr);
    int64_t at = wrap_axis(axis, rank(input));
    if (at < 0) bad_axis(axis, input);
    return static_cast<uint32_t>(at);
  }
  // The axes that attribute `attr` lists; none means all when `empty_is_all`.
  AxisSet check_axes(const char* attr, uint32_t input, bool empty_is_all = true) const {
    pg_ints list = get<Axes>(attr);
    AxisSet set;
    if (list.count == 0 && empty_is_all) {
      set.count = rank(input);
      set.bits = (1u << rank(input)) - 1;
    }
    for (int64_t i = 0; i < list.count; i++) {
      int64_t at = wrap_axis(list.value[i], rank(input));
      if (at < 0) bad_axis(list.value[i], input);
      if (set.has(static_cast<uint32_t>(at)))
        fail_argument(format("axis %lld is listed twice in %s", static_cast<long long>(at + 1), attr));
      set.bits |= 1u << at;
      set.count++;
    }
    return set;
  }

 private:
  uint32_t group_size(uint32_t input) const { return call_.groups == nullptr ? 1 : call_.groups[input]; }
  uint32_t first(uint32_t input) const {
    if (call_.groups == nullptr) return input;
    uint32_t at = 0;
    for (uint32_t i = 0; i < input; i++) at += call_.groups[i];
    return at;
  }
  template <class... Args>
  [[noreturn]] static void complain(const char* pattern, Args... args) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fail_argument(format(pattern, args...));
#pragma GCC diagnostic pop
  }
  // Positions in messages count from 1, as in Lua.
  [[noreturn]] void bad_axis(int64_t axis, uint32_t input) const {
    long long shown = axis >= 0 ? axis + 1 : axis, n = rank(input) == 0 ? 1 : rank(input);
    std::string range = n == 1 ? std::string("1 or -1") : format("1..%lld or -%lld..-1", n, n);
    fail_argument(format("axis %lld is out of range for %s; expected %s", shown, text(input).c_str(), range.c_str()));
  }
  const pg_infer& call_;
};

// The shape that a and b broadcast to: a constant 1 broadcasts; where a symbol is involved sizes are assumed equal.
inline Shape broadcast(const Shape& a, const Shape& b) {
  Shape out;
  out.rank = std::max(a.rank, b.rank);
  for (uint32_t back = 1; back <= out.rank; back++) {
    Dim x = back <= a.rank ? Dim(a.dims[a.rank - back]) : Dim(1);
    Dim y = back <= b.rank ? Dim(b.dims[b.rank - back]) : Dim(1);
    if (!x.is(1) && !y.is(1) && !x.may_equal(y))
      fail_argument(format("shapes %s and %s do not broadcast: axis -%u is %lld and %lld", a.text().c_str(),
                           b.text().c_str(), back, static_cast<long long>(x.value), static_cast<long long>(y.value)));
    bool take_y = x.is(1) || (x.symbolic() && !y.is(1) && !y.symbolic());
    out.dims[out.rank - back] = take_y ? y.value : x.value;
  }
  return out;
}

// ---- gradients and decompositions ------------------------------------------------------------------------------

// Both work on values, by declared position; group() gives the members of a variadic input.
class ValueContext : public AttrReader {
 public:
  ValueContext(const pg_op_info& info, const void* attrs, pg_builder* builder, const pg_value* inputs,
               const uint32_t* groups)
      : AttrReader(info, attrs), builder_(builder), inputs_(inputs), groups_(groups) {}

  pg_builder* builder() const { return builder_; }
  bool has(uint32_t input) const { return size(input) > 0 && inputs_[first(input)] != 0; }
  Value in(uint32_t input) const { return {builder_, size(input) > 0 ? inputs_[first(input)] : 0}; }
  std::vector<Value> group(uint32_t input) const {
    std::vector<Value> values;
    for (uint32_t i = 0; i < size(input); i++) values.push_back({builder_, inputs_[first(input) + i]});
    return values;
  }
  // A call of `op` with all attributes that it shares with this operator.
  template <class... Values>
  Value call(const OpRef& op, Values... inputs) const {
    Call call(builder_, op);
    call.copy_attrs(info(), data());
    (call.input(inputs), ...);
    return call.emit();
  }
  uint32_t size(uint32_t input) const { return groups_ == nullptr ? 1 : groups_[input]; }
  uint32_t first(uint32_t input) const {
    if (groups_ == nullptr) return input;
    uint32_t at = 0;
    for (uint32_t i = 0; i < input; i++) at += groups_[i];
    return at;
  }

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
  bool needed(uint32_t input) const { return size(input) > 0 && call_.needed[first(input)] != 0; }
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
