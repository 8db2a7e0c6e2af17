// SPDX-License-Identifier: Apache-2.0
// Operators that break their promises, one each.
#include <perigee/functions.hpp>
#include <perigee/kernel.hpp>
#include <perigee/op.hpp>

using namespace pg;

namespace {

void like_x(ShapeContext& c) { c.out(0) = c.in(0); }

// ---- shape rules ----

PG_OP("faulty_half")
    .doc("Leaves out its second output.")
    .input("x", kFloating, "any")
    .output("y", "like x")
    .output("z", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) {
      c.out(0) = c.in(0) * 1.0;
      c.out(1) = c.in(0) * 2.0;
    });

PG_OP("faulty_dtype")
    .doc("Says dtype `code`: by default that none is given.")
    .input("x", kFloating, "any")
    .attr<int>("code", 0, "PG_DTYPE")
    .output("y", "like x")
    .shape([](ShapeContext& c) { c.out(0).set(static_cast<uint32_t>(c.get<int>("code")), c.shape(0)); })
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 1.0; });

PG_OP("faulty_symbol")
    .doc("Makes up a symbol.")
    .input("x", kFloating, "any")
    .output("y", "[?]")
    .shape([](ShapeContext& c) { c.out(0).set(PG_F32, {Dim(PG_DIM_SYMBOLIC - 1000000)}); })
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 1.0; });

// ---- views ----

PG_OP("faulty_view")
    .doc("A view of `size` elements with `stride` from `start`.")
    .input("x", kFloating, "[n]")
    .attr<int>("size", 1, "elements")
    .attr<int>("stride", 1, "of them")
    .attr<int>("start", 0, "element of x")
    .traits(PG_OP_VIEW)
    .output("y", "[size]")
    .shape([](ShapeContext& c) {
      auto y = c.out(0);
      const int64_t stride = c.get<int>("stride");
      y.set(c.dtype(0), {Dim(c.get<int>("size"))});
      y.view(&stride, c.get<int>("start"));
    });

PG_OP("faulty_view_dtype")
    .doc("A view of wider elements.")
    .input("x", kFloating, "[n]")
    .traits(PG_OP_VIEW)
    .output("y", "[n]")
    .shape([](ShapeContext& c) {
      auto y = c.out(0);
      const int64_t stride = 1;
      y.set(PG_F64, c.shape(0));
      y.view(&stride, 0);
    });

PG_OP("faulty_view_bare")
    .doc("A view without strides.")
    .input("x", kFloating, "[n]")
    .traits(PG_OP_VIEW)
    .output("y", "[n]")
    .shape(like_x);

PG_OP("faulty_view_copy")
    .doc("Wants a dense input, whatever it gets.")
    .input("x", kFloating, "[n]")
    .traits(PG_OP_VIEW)
    .output("y", "[n]")
    .shape([](ShapeContext& c) {
      auto y = c.out(0);
      y = c.in(0);
      y.view_of_copy();
    });

PG_OP("faulty_no_view")
    .doc("Gives strides, but is no view.")
    .input("x", kFloating, "[n]")
    .output("y", "[n]")
    .shape([](ShapeContext& c) {
      auto y = c.out(0);
      const int64_t stride = 5;
      y = c.in(0);
      y.view(&stride, 3);
    })
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 1.0; });

// ---- gradients and decompositions ----

PG_OP("faulty_unsaved")
    .doc("x^2 / 2 with a gradient rule that returns x, which is not saved.")
    .input("x", kFloating, "any")
    .output("y", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * c.in(0) * 0.5; })
    .grad([](GradContext& g) { g.din(0) = g.in(0); });

PG_OP("faulty_silent_grad")
    .doc("A gradient rule that fails without a word.")
    .input("x", kFloating, "any")
    .output("y", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 1.0; })
    .grad([](GradContext&) { throw Error(PG_E_NOT_SUPPORTED, ""); });

PG_OP("faulty_parts")
    .doc("Decomposes into a sum, which is not like x.")
    .input("x", kFloating, "any")
    .output("y", "like x, it says")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = sum(c.in(0)); });

PG_OP("faulty_parts_dtype")
    .doc("Decomposes into another dtype.")
    .input("x", kFloating, "any")
    .output("y", "like x, it says")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = cast(c.in(0), PG_F64); });

PG_OP("faulty_late")
    .doc("2 x, until a plugin brings a kernel that knows better.")
    .input("x", kFloating, "any")
    .output("y", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 2.0; });

// ---- kernels ----

PG_OP("faulty_extents")
    .doc("Publishes `count` elements.")
    .input("x", kFloating, "[n]")
    .attr<int>("count", 0, "of y")
    .output("y", "[m], m <= n", PG_OUTPUT_DYNAMIC)
    .shape(like_x);

struct Extents : Kernel {
  int64_t count;
  static void supports(const KernelCall&) {}
  Extents(const KernelCall& call, Plan&) : count(call.attr<int64_t>("count")) {}
  void launch(const pg_launch& launch) override { launch.extents[0] = count; }
};
PG_KERNEL("faulty_extents", Extents);

PG_OP("faulty_code")
    .doc("Fails with `code` and no message.")
    .input("x", kFloating, "any")
    .attr<int>("code", 8, "PG_E_*")
    .output("y", "like x")
    .shape(like_x);

struct Code : Kernel {
  int32_t code;
  static void supports(const KernelCall&) {}
  Code(const KernelCall& call, Plan&) : code(static_cast<int32_t>(call.attr<int64_t>("code"))) {}
  void launch(const pg_launch&) override { throw Error(code, ""); }
};
PG_KERNEL("faulty_code", Code);

PG_OP("faulty_result")
    .doc("Makes int32, which its kernel does not.")
    .input("x", kFloating, "any")
    .output("y", "int32, like x")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I32, c.shape(0)); });

struct Result : Kernel {
  static void supports(const KernelCall& call) { call.need_dtypes({PG_F32}); }
  Result(const KernelCall&, Plan&) {}
  void launch(const pg_launch&) override {}
};
PG_KERNEL("faulty_result", Result);
PG_KERNEL("faulty_resullt", Result);  // of no operator

// Not faulty: what it is given may be.
PG_OP("faulty_count")
    .doc("Adds 1 to every element of x, and tells how many there are.")
    .input("x", kFloating, "[n]", PG_INPUT_MUTATES)
    .output("y", "int64 []")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I64, {}); });

struct Count : Kernel {
  int64_t count, stride;
  static void supports(const KernelCall& call) { call.need(dtype_of(call.in(0)) == PG_F32, "takes float32"); }
  Count(const KernelCall& call, Plan&) : count(call.in(0).shape[0]), stride(call.in(0).stride[0]) {}
  void launch(const pg_launch& launch) override {
    auto* x = input<float>(launch, 0);
    for (int64_t i = 0; i < count; i++) x[i * stride] += 1;
    *output<int64_t>(launch, 0) = count;
  }
};
PG_KERNEL("faulty_count", Count);

// Not faulty, but seldom: both of these attributes would be called `axis` by users.
PG_OP("faulty_axes")
    .doc("[axis, number of axes]")
    .input("x", kFloating, "any")
    .attr<Axis>("axis", -1, "an axis")
    .attr<Axes>("axes", pg_ints{}, "some axes")
    .output("y", "int64 [2]")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I64, {2}); });

struct TwoAxes : Kernel {
  int64_t axis, count;
  static void supports(const KernelCall&) {}
  TwoAxes(const KernelCall& call, Plan&)
      : axis(call.axis("axis", call.in(0).rank)), count(static_cast<int64_t>(call.list("axes").size())) {}
  void launch(const pg_launch& launch) override {
    auto* y = output<int64_t>(launch, 0);
    y[0] = axis;
    y[1] = count;
  }
};
PG_KERNEL("faulty_axes", TwoAxes);

}  // namespace

using Faulty = Provides<OpTable, KernelTable<"cpu">>;
PG_PLUGIN(Faulty, "faulty", "1.0.0", "ops,kernels");
