// SPDX-License-Identifier: Apache-2.0
#include "perigee/op_context.hpp"

#include <algorithm>

#include "perigee/sdk/attributes.hpp"

namespace pg {

// ---- attributes ----

const pg_attr_info& AttrReader::find(const char* name) const {
  for (uint32_t i = 0; i < info_.attr_count; i++)
    if (info_.attrs[i]->name == name || std::strcmp(info_.attrs[i]->name, name) == 0) return *info_.attrs[i];
  fail_attr(info_, name);
}
void AttrReader::wrong_kind(const char* name) const {
  fail(PG_E_INTERNAL, format("%s.%s has another kind", info_.name, name));
}
double AttrReader::number() const {
  pg_number value;
  std::memcpy(&value, attrs_ + find("scalar").value, sizeof value);
  return value.real;
}

// ---- dimensions and shapes ----

namespace {

[[noreturn]] void overflow() { fail_argument("the size overflows a 64-bit integer"); }

}  // namespace

Dim operator+(Dim a, Dim b) {
  int64_t r;
  if (a.symbolic() || b.symbolic()) return dim_add(a.value, b.value);
  if (__builtin_add_overflow(a.value, b.value, &r)) overflow();
  return r;
}
Dim operator*(Dim a, Dim b) {
  int64_t r;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.symbolic() || b.symbolic()) return dim_mul(a.value, b.value);
  if (__builtin_mul_overflow(a.value, b.value, &r)) overflow();
  return r;
}
Dim operator/(Dim a, Dim b) {
  if (b.is(1)) return a;
  if (a.symbolic() || b.symbolic()) return dim_div(a.value, b.value);
  if (b.value <= 0) fail_argument(format("a size cannot be divided by %lld", static_cast<long long>(b.value)));
  return a.value >= 0 ? a.value / b.value : -((-a.value + b.value - 1) / b.value);
}
Dim max(Dim a, Dim b) {
  if (a.symbolic() || b.symbolic()) return dim_max(a.value, b.value);
  return std::max(a.value, b.value);
}

Shape::Shape(std::initializer_list<Dim> list) {
  for (Dim dim : list) push(dim);
}
Shape::Shape(const pg_tensor& t) : rank(t.rank) { std::copy_n(t.shape, t.rank, dims); }
Shape::Shape(const pg_ints& list) {
  for (int64_t i = 0; i < list.count; i++) push(list.value[i]);
}
void Shape::push(Dim dim) {
  if (rank == PG_MAX_RANK) fail_argument(format("more than %d axes", PG_MAX_RANK));
  dims[rank++] = dim.value;
}
void Shape::insert(uint32_t at, Dim dim) {
  push(0);
  for (uint32_t i = rank - 1; i > at; i--) dims[i] = dims[i - 1];
  dims[at] = dim.value;
}
void Shape::erase(uint32_t at) {
  rank--;
  for (uint32_t i = at; i < rank; i++) dims[i] = dims[i + 1];
}
Dim Shape::count() const {
  Dim product = 1;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == 0) return 0;
    product = product * Dim(dims[i]);
  }
  return product;
}
bool Shape::symbolic() const {
  return std::any_of(dims, dims + rank, [](int64_t d) { return PG_DIM_IS_SYMBOLIC(d); });
}
std::string Shape::text() const {
  pg_tensor t{};
  t.rank = rank;
  t.shape = dims;
  return shape_text(t);
}

int64_t wrap_axis(int64_t axis, uint32_t rank) {
  int64_t n = rank == 0 ? 1 : rank;
  if (axis < -n || axis >= n) return -1;
  return axis < 0 ? axis + n : axis;
}

pg_ints axis_list(const AxisSet& set) {
  pg_ints out{};
  for (uint32_t i = 0; i < PG_MAX_RANK; i++)
    if (set.has(i)) out.value[out.count++] = i;
  return out;
}

Shape broadcast(const Shape& a, const Shape& b) {
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

// ---- shape and dtype rules ----

OutputMeta& OutputMeta::operator=(const pg_tensor& like) { return set(dtype_of(like), Shape(like)); }
OutputMeta& OutputMeta::set(uint32_t dtype, const Shape& shape) {
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
void OutputMeta::view(const int64_t* stride, int64_t offset) {
  if (call_.symbolic != 0) return;
  meta_.flags = PG_META_VIEW;
  std::copy_n(stride, meta_.rank, meta_.stride);
  meta_.offset = offset;
}

const pg_tensor& ShapeContext::in(uint32_t input) const {
  if (!has(input)) fail_argument(format("%s is missing", name(input)));
  return *call_.inputs[first(input)];
}
std::string ShapeContext::text(uint32_t input) const {
  std::string text = name(input);  // not `" " + ...`: g++ 12 warns of an overlap that is none
  return text.append(" ").append(shape_text(in(input)));
}
uint32_t ShapeContext::first(uint32_t input) const {
  if (call_.groups == nullptr) return input;
  uint32_t at = 0;
  for (uint32_t i = 0; i < input; i++) at += call_.groups[i];
  return at;
}

void ShapeContext::complain(const char* pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text = format_list(pattern, arguments);
  va_end(arguments);
  fail_argument(text);
}
// Positions in messages count from 1, as in Lua.
void ShapeContext::bad_axis(int64_t axis, uint32_t input) const {
  long long shown = axis >= 0 && axis < INT64_MAX ? axis + 1 : axis, n = rank(input) == 0 ? 1 : rank(input);
  std::string range = n == 1 ? std::string("1 or -1") : format("1..%lld or -%lld..-1", n, n);
  fail_argument(format("axis %lld is out of range for %s; expected %s", shown, text(input).c_str(), range.c_str()));
}

void ShapeContext::check_rank(uint32_t input, uint32_t least, uint32_t most) const {
  uint32_t rank = this->rank(input);
  if (rank >= least && rank <= most) return;
  std::string want = least == most         ? format("%u axes", least)
                     : most == PG_MAX_RANK ? format("at least %u axes", least)
                                           : format("%u to %u axes", least, most);
  if (want == "1 axes" || want == "at least 1 axes") want.replace(want.size() - 4, 4, "axis");
  fail_argument(format("%s has %u axes; expected %s", text(input).c_str(), rank, want.c_str()));
}
void ShapeContext::check_dim(uint32_t input, uint32_t axis, Dim size, const char* why) const {
  if (dim(input, axis).may_equal(size)) return;
  fail_argument(format("%s: axis %u is %lld; expected %lld, %s", text(input).c_str(), axis + 1,
                       static_cast<long long>(dim(input, axis).value), static_cast<long long>(size.value), why));
}
void ShapeContext::check_same_shape(uint32_t input, uint32_t other) const {
  bool same = rank(input) == rank(other);
  for (uint32_t i = 0; same && i < rank(input); i++) same = dim(input, i).may_equal(dim(other, i));
  if (!same) fail_argument(format("%s must have the shape of %s", text(input).c_str(), text(other).c_str()));
}
void ShapeContext::check_same_dtype(uint32_t input, uint32_t other) const {
  if (dtype(input) == dtype(other)) return;
  fail_argument(format("%s is %s; expected %s, the dtype of %s", name(input), dtype_name(dtype(input)),
                       dtype_name(dtype(other)), name(other)));
}
void ShapeContext::check_index(uint32_t input) const {
  uint32_t d = dtype(input);
  need(d == PG_I64 || d == PG_I32, "%s is %s; expected int64 or int32", name(input), dtype_name(d));
}
uint32_t ShapeContext::check_axis(const char* attr, uint32_t input) const {
  int64_t axis = get<Axis>(attr);
  int64_t at = wrap_axis(axis, rank(input));
  if (at < 0) bad_axis(axis, input);
  return static_cast<uint32_t>(at);
}
AxisSet ShapeContext::check_axes(const char* attr, uint32_t input, bool empty_is_all) const {
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

// ---- gradients and decompositions ----

Value ValueContext::in(uint32_t input) const { return {builder_, size(input) > 0 ? inputs_[first(input)] : 0}; }
std::vector<Value> ValueContext::group(uint32_t input) const {
  std::vector<Value> values;
  for (uint32_t i = 0; i < size(input); i++) values.push_back({builder_, inputs_[first(input) + i]});
  return values;
}
uint32_t ValueContext::first(uint32_t input) const {
  if (groups_ == nullptr) return input;
  uint32_t at = 0;
  for (uint32_t i = 0; i < input; i++) at += groups_[i];
  return at;
}
bool GradContext::needed(uint32_t input) const { return size(input) > 0 && call_.needed[first(input)] != 0; }

}  // namespace pg
