// SPDX-License-Identifier: Apache-2.0
// slice, and the two operators that its gradient and writing through it need.
#include "part.hpp"

namespace pg::schema_slice {
namespace {

// One axis' entry, clamped to the axis as Python does.
struct Part {
  Dim start, length;
  int64_t step = 1;
  bool drop = false;
};

int64_t entry(const pg_ints& list, uint32_t i, int64_t otherwise) {
  return static_cast<int64_t>(i) < list.count ? list.value[i] : otherwise;
}

Dim clamp_position(int64_t position, Dim size) {
  if (position == INT64_MAX) return size;
  if (position == 0) return 0;
  return position < 0 ? max(size + Dim(position), 0) : min(Dim(position), size);
}

Part part_of(const ShapeContext& c, const pg_tensor& x, const char* name, uint32_t i) {
  int64_t start = entry(c.get<Ints>("starts"), i, 0), stop = entry(c.get<Ints>("stops"), i, INT64_MAX);
  Part part;
  part.step = entry(c.get<Ints>("steps"), i, 1);
  part.drop = entry(c.get<Ints>("drop"), i, 0) != 0;
  Dim size = x.shape[i];
  c.need(part.step >= 1, "the step of axis %u is %lld; expected at least 1", i + 1, static_cast<long long>(part.step));
  if (part.drop) {
    long long shown = start >= 0 ? start + 1 : start, n = size.value;
    bool inside = size.symbolic() || (start >= -size.value && start < size.value);
    c.need(inside, "position %lld is out of range for axis %u of %s %s; expected %s", shown, i + 1, name,
           shape_text(x).c_str(), n == 0 ? "none, as it is empty" : format("1..%lld or -%lld..-1", n, n).c_str());
    part.start = start < 0 ? size + Dim(start) : Dim(start);
    part.length = 1;
    return part;
  }
  part.start = clamp_position(start, size);
  // Without needless maxima: a whole axis keeps its very symbol.
  Dim end = clamp_position(stop, size), span = part.start.is(0) ? end : max(end - part.start, 0);
  part.length = part.step == 1 ? span : (span + Dim(part.step - 1)) / Dim(part.step);
  return part;
}

// The view's shape; strides and offset too where x has strides.
Shape sliced(const ShapeContext& c, uint32_t input, int64_t* stride, int64_t* offset) {
  const pg_tensor& x = c.in(input);
  const char* name = c.name(input);
  c.need(c.get<Ints>("starts").count <= static_cast<int64_t>(x.rank), "%lld positions for %s %s, which has %u axes",
         static_cast<long long>(c.get<Ints>("starts").count), name, shape_text(x).c_str(), x.rank);
  Shape shape;
  uint64_t first = 0;
  bool empty = false;
  for (uint32_t i = 0; i < x.rank; i++) {
    Part part = part_of(c, x, name, i);
    empty = empty || part.length.is(0);
    if (x.stride != nullptr) {
      // Strides of empty tensors are any numbers, and so is the step behind an axis' only element.
      first += static_cast<uint64_t>(part.start.value) * static_cast<uint64_t>(x.stride[i]);
      stride[shape.rank] = part.length.value > 1 ? x.stride[i] * part.step : x.stride[i];
    }
    if (!part.drop) shape.push(part.length);
  }
  *offset = empty ? 0 : static_cast<int64_t>(first);  // keeps it inside the storage
  return shape;
}

OpBuilder& slice_attrs(OpBuilder& op) {
  return op.attr<Ints>("starts", {}, "first position of each axis, from 0; negative counts from the end")
      .attr<Ints>("stops", {}, "position behind the last; the largest int64 is the end")
      .attr<Ints>("steps", {}, "distance between positions, at least 1")
      .attr<Ints>("drop", {}, "1 removes the axis; only its start counts, and must be in range");
}

constinit PartFamily family{
    .view = OpRef("slice"),
    .grad = OpRef("slice_grad"),
    .scatter = OpRef("slice_scatter"),
    .name = "slice",
    .noun = "slice",
    .doc =
        "A part of x: one entry an axis, in order; axes without an entry stay whole. Ranges are half-open and clamped "
        "to the axis, as in Python.",
    .result = "the part",
    .attrs = slice_attrs,
    .shape = sliced,
};
const bool declared = declare_part(family);

}  // namespace
}  // namespace pg::schema_slice
