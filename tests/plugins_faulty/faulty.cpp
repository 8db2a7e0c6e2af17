// SPDX-License-Identifier: Apache-2.0
// Operators and optimizers that break their promises, one each.
#include <perigee/functions.hpp>
#include <perigee/kernel.hpp>
#include <perigee/layer.hpp>
#include <perigee/op.hpp>
#include <perigee/optimizer.hpp>

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

PG_OP("faulty_first_refuses")
    .doc("x. Of its two kernels the first takes dense float64 only, the second any stride.")
    .input("x", kFloating, "[n]")
    .output("y", "like x")
    .shape(like_x);

struct First : Kernel {
  static void supports(const KernelCall& call) {
    call.need_dtypes({PG_F64});
    call.need_dense();
  }
  First(const KernelCall&, Plan&) {}
  void launch(const pg_launch&) override {}
};
PG_KERNEL("faulty_first_refuses", First);

struct Second : Kernel {
  int64_t count, stride;
  static void supports(const KernelCall& call) { call.need_dtypes({PG_F32}); }
  Second(const KernelCall& call, Plan&) : count(call.in(0).shape[0]), stride(call.in(0).stride[0]) {}
  void launch(const pg_launch& launch) override {
    auto *x = input<float>(launch, 0), *y = output<float>(launch, 0);
    for (int64_t i = 0; i < count; i++) y[i] = x[i * stride];
  }
};
PG_KERNEL("faulty_first_refuses", Second);

// ---- in place ----

// Not faulty, but its kernel takes dense tensors only.
PG_OP("faulty_dense")
    .doc("x^2 + y.")
    .input("x", kFloating, "any")
    .input("y", kFloating, "like x")
    .traits(PG_OP_IN_PLACE)
    .output("z", "like x")
    .shape(like_x)
    .saves("x")
    .grad([](GradContext& g) {
      g.din(0) = g.dout(0) * g.in(0) * 2.0;
      g.din(1) = g.dout(0);
    });

struct Dense : Kernel {
  int64_t count;
  static void supports(const KernelCall& call) {
    call.need_dtypes({PG_F32});
    call.need_dense();
  }
  Dense(const KernelCall& call, Plan&) : count(element_count(call.in(0))) {}
  void launch(const pg_launch& launch) override {
    auto *x = input<float>(launch, 0), *y = input<float>(launch, 1), *z = output<float>(launch, 0);
    for (int64_t i = 0; i < count; i++) z[i] = x[i] * x[i] + y[i];
  }
};
PG_KERNEL("faulty_dense", Dense);

PG_OP("faulty_dense_count")
    .doc("faulty_count, of dense tensors only.")
    .input("x", kFloating, "[n]", PG_INPUT_MUTATES)
    .output("y", "int64 []")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I64, {}); });

struct DenseCount : Count {
  static void supports(const KernelCall& call) {
    Count::supports(call);
    call.need(is_dense(call.in(0)), "takes dense tensors");
  }
  using Count::Count;
};
PG_KERNEL("faulty_dense_count", DenseCount);

PG_OP("faulty_composed")
    .doc("2 x, on devices that have no kernel for it: all.")
    .input("x", kFloating, "any")
    .traits(PG_OP_IN_PLACE)
    .output("y", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 2.0; });

PG_OP("faulty_lacking")
    .doc("Nothing computes it.")
    .input("x", kFloating, "any")
    .traits(PG_OP_IN_PLACE)
    .output("y", "like x")
    .shape(like_x);

PG_OP("faulty_lacking_grad")
    .doc("x, with a gradient that nothing computes.")
    .input("x", kFloating, "any")
    .output("y", "like x")
    .shape(like_x)
    .decompose([](ExpandContext& c) { c.out(0) = c.in(0) * 1.0; })
    .grad([](GradContext& g) { g.din(0) = apply<"faulty_lacking">(g.dout(0)); });

// ---- what they emit ----

// Not faulty: tells what it was given.
PG_OP("faulty_given")
    .doc("[length of every input, then how many tensors there are]")
    .input("x", kFloating, "any")
    .input("y", kFloating, "any", PG_INPUT_OPTIONAL)
    .input("more", kFloating, "any", PG_INPUT_VARIADIC)
    .input("z", kFloating, "any", PG_INPUT_OPTIONAL)
    .output("lengths", "int64 [5]")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I64, {5}); });

struct Given : Kernel {
  int64_t lengths[5] = {};
  static void supports(const KernelCall&) {}
  Given(const KernelCall& call, Plan&) {
    for (uint32_t i = 0; i < 4; i++) lengths[i] = call.group(i);
    for (uint32_t i = 0; i < call.input_count(); i++) lengths[4] += call.has(i) ? 1 : 0;
  }
  void launch(const pg_launch& launch) override { std::memcpy(output<int64_t>(launch, 0), lengths, sizeof lengths); }
};
PG_KERNEL("faulty_given", Given);

PG_OP("faulty_few")
    .doc("Emits faulty_given with `count` inputs of its four, the third of which is two.")
    .input("x", kFloating, "any")
    .attr<int>("count", 1, "inputs")
    .output("lengths", "int64 [5]")
    .shape([](ShapeContext& c) { c.out(0).set(PG_I64, {5}); })
    .decompose([](ExpandContext& c) {
      static constinit OpRef op("faulty_given");
      const Value x = c.in(0), two[] = {x, x};
      Call call(x.builder, op);
      for (int64_t i = 0; i < c.get<int>("count"); i++) {
        if (i == 2) {
          call.inputs(two);
        } else {
          call.input(x);
        }
      }
      c.out(0) = call.emit();
    });

PG_OP("faulty_attr")
    .doc("Asks for an attribute that is not there: in a rule, of another operator, in its kernel.")
    .input("x", kFloating, "any")
    .attr<int>("where", 0, "0 to 3: nowhere, in the rule, of another operator, in the kernel")
    .attr<double>("factor", 1, "of no use")
    .output("y", "like x")
    .shape([](ShapeContext& c) {
      if (c.get<int>("where") == 1) c.get<int>("wher");
      c.out(0) = c.in(0);
    })
    .decompose([](ExpandContext& c) {
      static constinit OpRef known("faulty_attr", "where"), bare("faulty_given", "axis"), op("faulty_attr", "were");
      const OpRef& wrong = c.get<int>("where") == 2 ? op : bare;
      Call(c.in(0).builder, c.get<int>("where") == 0 ? known : wrong).input(c.in(0));
      c.out(0) = c.in(0) * 1.0;
    });

struct Attr : Kernel {
  static void supports(const KernelCall& call) { call.need(call.attr<int64_t>("where") == 3, "is there for 3"); }
  Attr(const KernelCall& call, Plan&) { call.attr<int64_t>("here"); }
  void launch(const pg_launch&) override {}
};
PG_KERNEL("faulty_attr", Attr);

// ---- optimizers ----

struct FaultySteps {
  double lr = 0.5;
  Bool first = false;

  void check() const {}
  uint64_t slots() const { return 0; }
  void update(const OptimizerStep& step) const {
    for (const Update& u : step.updates()) {
      const double rate = first ? (step.number() == 1 ? lr : lr / 2) : lr / static_cast<double>(step.number());
      assign(u.param, u.param - u.gradient * rate);
    }
  }
};

PG_OPTIMIZER(FaultySteps, "FaultySteps", "Its rate depends on the step, and no attribute says so.")
    .attr(&FaultySteps::lr, "lr", "of the first step")
    .attr(&FaultySteps::first, "first", "the rate is lr in the first step, half of it later; else lr / step");

struct FaultyConstant {
  double lr = 0.5;

  void check() const {}
  uint64_t slots() const { return 0; }
  void update(const OptimizerStep& step) const {
    for (const Update& u : step.updates()) assign(u.param, u.param - u.gradient * lr);
  }
};

PG_OPTIMIZER(FaultyConstant, "FaultyConstant", "Nothing is wrong with it: the same in every step.")
    .attr(&FaultyConstant::lr, "lr", "rate");

// ---- layers ----

PG_OP("faulty_calls")
    .doc("Nothing is wrong with it: how often it has been called, which is an effect that only it knows of.")
    .input("x", kFloating, "[1]")
    .output("y", "like x")
    .ordered()
    .shape(like_x);

struct Calls : Kernel {
  static void supports(const KernelCall& call) { call.need_dtypes({PG_F32}); }
  Calls(const KernelCall&, Plan&) {}
  void launch(const pg_launch& launch) override {
    static float calls = 0;
    *output<float>(launch, 0) = ++calls;
  }
};
PG_KERNEL("faulty_calls", Calls);

struct FaultyCounted {
  void parameters(Params&) {}
  Value build(const LayerCall& c) const {
    static constinit OpRef calls("faulty_calls"), relu("relu");
    c.call(calls).input(c.input()).emit();
    return c.call(relu).input(c.input()).emit();
  }
};
PG_LAYER(FaultyCounted, "FaultyCounted", "Nothing is wrong with it: relu, which counts its calls.");

}  // namespace

using Faulty = Provides<OpTable, KernelTable<"cpu">, LayerTable, OptimizerTable>;
PG_PLUGIN(Faulty, "faulty", "1.0.0", "ops,kernels,layers,optimizers");
