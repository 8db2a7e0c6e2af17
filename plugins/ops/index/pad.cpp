// SPDX-License-Identifier: Apache-2.0
// pad_axes, and its gradient where what is added are elements of x.
#include <algorithm>

#include "../positions.hpp"

namespace pg::schema_pad {
namespace {

enum Mode { kConstant, kReflect, kReplicate, kCircular };
constexpr const char* kModes[] = {"constant", "reflect", "replicate", "circular"};
constexpr int64_t kMost = int64_t{1} << 60;  // sums of widths are sizes

OpBuilder& widths(OpBuilder& op) {
  return op
      .attr<Ints>("before", {}, "elements to add in front of each axis, first axis first; negative ones take some away")
      .attr<Ints>("behind", {}, "elements to add behind each axis");
}
OpBuilder& mode(OpBuilder& op, int32_t otherwise) {
  return op.choice("mode", {"constant", "reflect", "replicate", "circular"}, otherwise,
                   "what is added. constant: `value`; reflect: the elements seen in a mirror at the outermost one, "
                   "which is not repeated; replicate: the outermost one; circular: those at the other end");
}

int64_t width(const pg_ints& list, uint32_t axis) {
  return static_cast<int64_t>(axis) < list.count ? list.value[axis] : 0;
}

// How many elements mode `how` can add at an end of an axis of n, of which `left` are not taken away.
int64_t limit(int how, int64_t n, int64_t left) {
  switch (how) {
    case kConstant: return kMost;
    case kReflect: return n - 1;
    case kReplicate: return n > 0 ? kMost : 0;
    default: return left;
  }
}

Shape padded(const ShapeContext& c, uint32_t input) {
  const pg_ints before = c.get<Ints>("before"), behind = c.get<Ints>("behind");
  int how = c.get<Choice>("mode");
  uint32_t rank = c.rank(input);
  int64_t count = std::max(before.count, behind.count);
  c.need(count <= static_cast<int64_t>(rank), "%lld widths for %s, which has %u axes", static_cast<long long>(count),
         c.text(input).c_str(), rank);
  Shape shape = c.shape(input);
  for (uint32_t i = 0; i < rank; i++) {
    int64_t a = width(before, i), b = width(behind, i);
    if (a == 0 && b == 0) continue;
    long long shown[] = {a, b};
    c.need(a <= kMost && b <= kMost && a >= -kMost && b >= -kMost, "widths %lld and %lld are too large for axis %u",
           shown[0], shown[1], i + 1);
    Dim n = shape[i];
    if (!n.symbolic()) {
      int64_t left = n.value + std::min<int64_t>(a, 0) + std::min<int64_t>(b, 0), most = limit(how, n.value, left);
      c.need(left >= 0, "widths %lld and %lld take more than axis %u of %s has", shown[0], shown[1], i + 1,
             c.text(input).c_str());
      c.need(a <= most && b <= most, "widths %lld and %lld are too large for axis %u of %s in mode %s", shown[0],
             shown[1], i + 1, c.text(input).c_str(), kModes[how]);
    }
    shape.dims[i] = (n + Dim(a + b)).value;
  }
  return shape;
}

pg_ints negated(pg_ints list) {
  for (int64_t i = 0; i < list.count; i++) list.value[i] = -list.value[i];
  return list;
}

// ---- compositions, an axis at a time ----

Value cropped(Value x, uint32_t axis, int64_t before, int64_t behind) {
  static constinit OpRef op("slice", "starts", "stops");
  if (before >= 0 && behind >= 0) return x;
  pg_ints starts{}, stops{};
  starts.count = stops.count = axis + 1;
  for (uint32_t i = 0; i < axis; i++) stops.value[i] = INT64_MAX;
  starts.value[axis] = std::max<int64_t>(0, -before);
  stops.value[axis] = behind < 0 ? known(x.dim(axis)) + behind : INT64_MAX;
  return Call(x.builder, op).input(x).set(0, starts).set(1, stops).emit();
}

Value constant(Value x, uint32_t axis, int64_t before, int64_t behind, double value) {
  static constinit OpRef join("cat", "axis"), fill("fill", "shape", "dtype", "value"), move("transfer", "device");
  x = cropped(x, axis, before, behind);
  std::vector<Value> parts;
  auto add = [&](int64_t n) {
    if (n <= 0) return;
    pg_ints shape{};
    shape.count = x.rank();
    for (uint32_t i = 0; i < x.rank(); i++) shape.value[i] = i == axis ? n : x.dim(i);
    Value part = Call(x.builder, fill).set(0, shape).set(1, x.dtype()).set(2, value).emit();
    if (part.device() != x.device()) part = Call(x.builder, move).input(part).set(0, x.device()).emit();
    parts.push_back(part);
  };
  add(before);
  parts.push_back(x);
  add(behind);
  return parts.size() == 1 ? x : Call(x.builder, join).inputs(parts).set(0, axis).emit();
}

// Which positions of an axis of n stand at the positions of the result.
Value sources(Value like, int how, int64_t n, int64_t before, int64_t behind) {
  Value i = positions(like, n + before + behind);
  if (how == kCircular) {
    int64_t first = std::max<int64_t>(0, -before), left = n - first + std::min<int64_t>(0, behind);
    Value around =
        apply_right<"remainder">(i - static_cast<double>(std::max<int64_t>(0, before)), static_cast<double>(left));
    return around + static_cast<double>(first);
  }
  auto last = static_cast<double>(n - 1);
  i = i - static_cast<double>(before);
  if (how == kReplicate) return minimum(maximum(i, 0.0), last);
  return last - abs(last - abs(i));
}

Value repeated(Value x, uint32_t axis, int how, int64_t before, int64_t behind) {
  static constinit OpRef op("index_select", "axis");
  return Call(x.builder, op).input(x).input(sources(x, how, known(x.dim(axis)), before, behind)).set(0, axis).emit();
}

void decompose(ExpandContext& e) {
  const pg_ints before = e.get<Ints>("before"), behind = e.get<Ints>("behind");
  int how = e.get<Choice>("mode");
  Value x = e.in(0);
  for (uint32_t i = 0; i < x.rank(); i++) {
    int64_t a = width(before, i), b = width(behind, i);
    if (a == 0 && b == 0) continue;
    x = how == kConstant ? constant(x, i, a, b, e.get<double>("value")) : repeated(x, i, how, a, b);
  }
  e.out(0) = x.id == e.in(0).id ? clone(x) : x;
}

// Of one axis: dy, whose axis has been padded, summed to n.
Value gathered(Value dy, uint32_t axis, int64_t n, int how, int64_t before, int64_t behind) {
  static constinit OpRef op("index_select_grad", "axis"), fill("fill", "shape", "dtype"), expand("expand", "shape"),
      move("transfer", "device");
  pg_ints shape{};
  shape.count = dy.rank();
  for (uint32_t i = 0; i < dy.rank(); i++) shape.value[i] = i == axis ? n : dy.dim(i);
  Value like = Call(dy.builder, fill).set(0, pg_ints{}).set(1, dy.dtype()).emit();
  if (like.device() != dy.device()) like = Call(dy.builder, move).input(like).set(0, dy.device()).emit();
  like = Call(dy.builder, expand).input(like).set(0, shape).emit();
  return Call(dy.builder, op).input(dy).input(sources(dy, how, n, before, behind)).input(like).set(0, axis).emit();
}

void decompose_grad(ExpandContext& e) {
  const pg_ints before = e.get<Ints>("before"), behind = e.get<Ints>("behind");
  int how = e.get<Choice>("mode");
  Value x = e.in(1), d = e.in(0);
  for (uint32_t i = 0; i < x.rank(); i++) {
    int64_t a = width(before, i), b = width(behind, i);
    if (a == 0 && b == 0) continue;
    d = how == kConstant ? constant(d, i, -a, -b, 0) : gathered(d, i, known(x.dim(i)), how, a, b);
  }
  e.out(0) = d.id == e.in(0).id ? clone(d) : d;
}

const bool declared = [] {
  mode(widths(declare_op("pad_axes").category("index")), kConstant)
      .doc("x with elements added at the ends of axes, or taken away.")
      .input("x", kStored, "[...]")
      .attr<double>("value", 0, "what mode constant adds, converted to the dtype of x")
      .runtime()
      .output("y", "shape of x, with both widths of an axis added to its size")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), padded(c, 0)); })
      .grad([](GradContext& g) {
        static constinit OpRef pad("pad_axes", "before", "behind"), sum("pad_axes_grad");
        if (g.get<Choice>("mode") != kConstant) {
          g.din(0) = g.call(sum, g.dout(0), g.in(0));
          return;
        }
        g.din(0) = Call(g.builder(), pad)
                       .input(g.dout(0))
                       .set(0, negated(g.get<Ints>("before")))
                       .set(1, negated(g.get<Ints>("behind")))
                       .emit();
      })
      .decompose(decompose);

  mode(widths(declare_op("pad_axes_grad").category("index")), kReflect)
      .doc("Zeros in the shape of x, plus each element of dy at the one that pad_axes put there.")
      .input("dy", kReal, "the shape of the padded x")
      .input("x", kReal, "[...]", PG_INPUT_META)
      .output("dx", "shape of x, dtype of dy")
      .shape([](ShapeContext& c) {
        Shape want = padded(c, 1);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the padded x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .grad([](GradContext& g) {
        static constinit OpRef op("pad_axes");
        g.din(0) = g.call(op, g.dout(0));
      })
      .decompose(decompose_grad);
  return true;
}();

}  // namespace
}  // namespace pg::schema_pad
