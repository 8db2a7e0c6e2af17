// SPDX-License-Identifier: Apache-2.0
// An exhibit by the C++ SDK as it was: what its templates and sources made of the tables. Never change what is here:
// what is new gets an exhibit of its own (README.md).
#include <cstdio>
#include <memory>
#include <perigee/format.hpp>
#include <perigee/functions.hpp>
#include <perigee/op.hpp>
#include <perigee/optimizer.hpp>

namespace {

using namespace pg;

// ---- operators: attributes of every kind, symbols, views that are written through, random numbers ----

PG_OP("sdk_axes")
    .category("reduction")
    .doc("The mean over axes, times factor, in another dtype where one is given.")
    .input("x", kFloating, "any shape")
    .attr<Axes>("axes", {}, "those to take the mean over; none: all")
    .attr<bool>("keepdim", false, "whether they stay, of size 1")
    .attr<Dtype>("dtype", 0, "of the result")
    .choice("power", {"one", "two"}, 0, "of the elements")
    .attr<double>("factor", 1, "a number")
    .runtime()
    .output("y", "the axes that are left")
    .traits(PG_OP_REDUCTION)
    .numeric(PG_NUMERIC_FLOAT32)
    .shape([](ShapeContext& c) {
      AxisSet axes = c.check_axes("axes", 0);
      Shape y;
      for (uint32_t i = 0; i < c.rank(0); i++) {
        if (!axes.has(i)) y.push(c.dim(0, i));
        if (axes.has(i) && c.get<bool>("keepdim")) y.push(1);
      }
      uint32_t dtype = c.get<Dtype>("dtype");
      c.out(0).set(dtype == 0 ? c.dtype(0) : dtype, y);
    })
    .decompose([](ExpandContext& e) {
      static constinit OpRef mean("mean", "axes", "keepdim"), cast("cast", "dtype");
      Value x = e.get<Choice>("power") == 1 ? e.in(0) * e.in(0) : e.in(0);
      Call call(e.builder(), mean);
      Value y = call.input(x).set(0, e.get<Axes>("axes")).set(1, e.get<bool>("keepdim")).emit();
      y = y * e.get<double>("factor");
      uint32_t dtype = e.get<Dtype>("dtype");
      if (dtype != 0) y = Call(e.builder(), cast).input(y).set(0, dtype).emit();
      e.out(0) = y;
    });

PG_OP("sdk_gate")
    .category("elementwise")
    .doc("x where it is above the limit, else y: a number may stand for either.")
    .input("x", kRealOrBool, "any shape", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .input("y", kRealOrBool, "any shape that fits", PG_INPUT_PROMOTE | PG_INPUT_OPTIONAL)
    .scalar()
    .attr<pg_number>("limit", pg_number{}, "a number of any kind")
    .runtime()
    .output("z", "the shape that both broadcast to")
    .traits(PG_OP_ELEMENTWISE)
    .shape([](ShapeContext& c) {
      uint32_t like = c.has(0) ? 0 : 1;
      c.out(0).set(c.dtype(like), c.has(0) && c.has(1) ? broadcast(c.shape(0), c.shape(1)) : c.shape(like));
    })
    .expression("Select(Gt(x, limit), x, y)");

Value head(Value x, int64_t count) {
  static constinit OpRef slice("slice", "starts", "stops");
  return Call(x.builder, slice).input(x).set(0, make_ints({0})).set(1, make_ints({count})).emit();
}
Value joined(Value a, Value b) {
  static constinit OpRef cat("cat");
  const Value parts[] = {a, b};
  return Call(a.builder, cat).inputs(parts).emit();
}

PG_OP("sdk_tail")
    .category("view")
    .doc("All but the first elements along axis 1, which may be written through.")
    .input("x", kAnyDtype, "[n, ...]")
    .attr<int>("skip", 1, "how many to leave out")
    .output("y", "[n - skip, ...]")
    .traits(PG_OP_VIEW)
    .shape([](ShapeContext& c) {
      c.check_rank(0, 1);
      int64_t skip = c.get<int>("skip");
      c.need(skip >= 0, "skip must not be negative, but is %lld", static_cast<long long>(skip));
      Shape y = c.shape(0);
      y.dims[0] = (c.dim(0, 0) - Dim(skip)).value;
      c.need(c.symbolic() || y.dims[0] >= 0, "skip is more than there are");
      c.out(0).set(c.dtype(0), y);
      if (!c.symbolic()) c.out(0).view(c.in(0).stride, skip * c.in(0).stride[0]);
    })
    .grad([](GradContext& g) { g.din(0) = joined(head(zeros_like(g.in(0)), g.get<int>("skip")), g.dout(0)); })
    .write_back([](ExpandContext& e) { e.out(0) = joined(head(e.in(0), e.get<int>("skip")), e.in(1)); });

// ---- a layer of two inputs and two outputs ----

struct Mixer {
  int64_t features = 0, extra = 1;
  double begin = 0.5;
  Bool shared = true;

  void parameters(Params& p) {
    p.infer(features, "features", -1);
    p.positive(extra, "extra");
    p.constant(0, make_ints({features}), begin);
    if (!shared) p.uniform(1, make_ints({features, extra}), 1);
  }
  std::array<Value, 2> build(const LayerCall& c) const {
    Value mixed = c.input(0) * c.param(0) + c.input(1) * (1.0 - c.param(0));
    return {shared ? mixed : mixed + mean_of(c.param(1)), c.input(0) - c.input(1)};
  }
  static Value mean_of(Value x) {
    static constinit OpRef op("sdk_axes", "axes");
    return Call(x.builder, op).input(x).set(0, make_ints({1})).emit();
  }
};

PG_LAYER(Mixer, "SdkMixer", "Two tensors [..., features], mixed by a learnt number for each place.")
    .inputs(2)
    .inferred(&Mixer::features, "features", "size of the last axis")
    .attr(&Mixer::extra, "extra", "columns of shift")
    .attr(&Mixer::begin, "begin", "where the numbers begin")
    .attr(&Mixer::shared, "shared", "whether there is no shift")
    .params({"mix", "shift"});

// ---- an optimizer of two slots ----

struct Heavy {
  double lr = 0.1, momentum = 0.5;
  Bool slow = false;

  void check() const {
    check_not_negative(lr, "lr");
    check_fraction(momentum, "momentum");
  }
  uint64_t slots() const { return slow ? 3 : 1; }
  void update(const OptimizerStep& step) const {
    for (const Update& u : step.updates()) {
      assign(u.state[0], u.state[0] * momentum + u.gradient);
      if (slow) assign(u.state[1], u.state[1] + u.gradient * u.gradient);
      assign(u.param, u.param - (slow ? u.state[0] / (u.state[1] + 1) : u.state[0]) * lr);
    }
  }
};

PG_OPTIMIZER(Heavy, "SdkHeavy", "Descent with momentum.")
    .attr(&Heavy::lr, "lr", "learning rate")
    .attr(&Heavy::momentum, "momentum", "in [0, 1)")
    .attr(&Heavy::slow, "slow", "whether large gradients make steps small")
    .slots({"momentum", "squares"});

// ---- files ----

struct Lines {
  static constexpr const char *name = "sdk_lines", *doc = "One tensor of float64 as text.", *extensions = ".sdklines";
  static constexpr const char* options = "scale=1";

  static void read(const std::string& path, const Options& options, Sink& sink) {
    std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
    long long count = 0;
    if (!file || std::fscanf(file.get(), "%lld", &count) != 1 || count < 0) fail_data(path, "there is no count");
    auto* to = static_cast<double*>(sink.tensor("lines", PG_F64, {count}));
    for (long long i = 0; i < count; i++) {
      if (std::fscanf(file.get(), "%lf", &to[i]) != 1) fail_data(path, format("it ends before number %lld", i + 1));
      to[i] *= static_cast<double>(options.integer("scale"));
    }
    sink.note("count", std::to_string(count));
  }
  static void write(const std::string& path, const Items& items, const Notes&) {
    if (items.size() != 1 || items[0].dtype != PG_F64) fail_argument("it holds one tensor of float64");
    std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
    if (!file) fail_argument("cannot open " + path);
    uint64_t count = items[0].bytes / sizeof(double);
    std::fprintf(file.get(), "%llu\n", static_cast<unsigned long long>(count));
    for (uint64_t i = 0; i < count; i++) {
      std::fprintf(file.get(), "%.17g\n", static_cast<const double*>(items[0].data)[i]);
    }
  }
};
PG_FORMAT(Lines);

}  // namespace

using Exhibit = pg::Provides<pg::OpTable, pg::LayerTable, pg::OptimizerTable, pg::FormatTable>;
PG_PLUGIN(Exhibit, "sdk", "1.0.0", "ops,layers,optimizers,formats");
