// SPDX-License-Identifier: Apache-2.0
// A linear layer, the batch norms behind it and an activation behind these are one product: by weights that are scaled,
// with a bias that is shifted.
#include "nets/net_linear.hpp"

#include <cstring>
#include <optional>

#include "linalg/product.hpp"
#include "nets/net_fold.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

bool is_norm(const char* name) {
  return std::strcmp(name, "batch_norm") == 0 || std::strcmp(name, "batch_norm_activation") == 0;
}

// The nodes of one, as far as they have been read.
struct LinearNet {
  ProductShape shape;
  uint32_t dtype;
  uint32_t x, weight, bias, y;
  std::vector<NetNorm> norms;
};

LinearNet read_linear_layer(const Region& region, uint32_t n) {
  Region::Call described;
  region.describe(n, described);
  const KernelCall call(&described.call);
  if (!call.is("linear")) fail_support("no linear layer");
  const pg_node& node = region.node(n);
  const pg_tensor &weight = call.in(1), &y = call.out(0);
  const uint32_t dtype = dtype_of(y);
  if (!is_net_dtype(dtype) || y.rank != 2 || !is_dense(y) || element_count(y) == 0 || weight.shape[1] == 0)
    fail_support("no rows of floats");
  LinearNet net{read_linear(call), dtype, node.inputs[0], node.inputs[1], PG_VALUE_NONE, node.outputs[0], {}};
  if (!region.constant(net.weight)) fail_support("a weight changes");
  net.bias = constant_vector(region, node, 2, weight.shape[0]);
  return net;
}

// Whether the node goes on where the net ends; then it is a part of it.
bool goes_on(const Region& region, uint32_t n, LinearNet& net) {
  const pg_node& node = region.node(n);
  if (node.input_count == 0 || node.inputs[0] != net.y || net.shape.activation != Activation::kNone) return false;
  for (uint32_t k = 1; k < node.output_count; k++)
    if (node.outputs[k] != PG_VALUE_NONE) return false;
  Region::Call described;
  region.describe(n, described);
  const KernelCall call(&described.call);
  if (!is_dense(call.out(0)) || dtype_of(call.out(0)) != net.dtype) return false;
  if (is_norm(node.op->name)) {
    try {
      net.norms.push_back(read_net_norm(region, node, call, net.shape.n));
    } catch (const Error&) {
      return false;
    }
    if (call.is("batch_norm_activation")) net.shape.activation = Activation::kRelu;
  } else if (net.norms.empty()) {
    return false;
  } else if (call.is("relu")) {
    net.shape.activation = Activation::kRelu;
  } else if (call.is("gelu") && call.attr<int>("approximate") != 0) {
    net.shape.activation = Activation::kGeluTanh;
  } else {
    return false;
  }
  net.y = node.outputs[0];
  return true;
}

class LinearNetKernel final : public DescribedKernel {
 public:
  LinearNetKernel(const Region& piece, const LinearNet& net, Plan& plan)
      : net_(net), positions_(launch_positions(piece)), fold_(piece, positions_, net.shape.n, net.bias, net.norms) {
    const pg_tensor& weight = piece.value(net.weight);
    weight_row_ = weight.stride[0], weight_column_ = weight.stride[1];
    ProductShape& s = net_.shape;
    s.b = {1, s.k};  // the folded weight [n, k], row-major
    s.bias = true, s.bias_stride = 1;
    product_ = make_product(s, true);
    element_ = static_cast<uint64_t>(dtype_bytes(net_.dtype));
    result_bytes_ = static_cast<uint64_t>(s.m * s.n) * element_;
    if (piece.raw->overwrites[0] == 0) result_bytes_ = 0;
    Scratch workspace;
    workspace.take(result_bytes_);
    workspace.take(product_->workspace());
    plan.workspace = workspace.bytes();
    packs_ = product_->packed_bytes() > 0;
    weight_bytes_ = packs_ ? product_->packed_bytes() : static_cast<uint64_t>(s.n * s.k) * element_;
    Scratch scratch;
    place(scratch);
    plan.pack_bytes[0] = scratch.bytes();
    description_ = format("%zu batch norms in a linear layer's weights, %d activations in its product",
                          net.norms.size(), s.activation != Activation::kNone ? 1 : 0);
  }

  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    Scratch scratch(host_pointer(target));
    const Packed packed = place(scratch);
    switch (net_.dtype) {
      case PG_BF16: return fold<BFloat16>(launch, packed);
      case PG_F16: return fold<Half>(launch, packed);
      default: return fold<float>(launch, packed);
    }
  }

  void launch(const pg_launch& launch) override {
    Scratch kept(host_pointer(launch.packed[0]));
    const Packed packed = place(kept);
    Scratch workspace(host_pointer(launch.workspace));
    void* const aside = workspace.take(result_bytes_);
    void* const scratch_of_product = workspace.take(product_->workspace());
    const void* x = pg::input(launch, positions_[net_.x]);
    void* const y = pg::output(launch, 0);
    void* const result = x == y ? aside : y;
    product_->run({x, packs_ ? nullptr : packed.weight, packed.bias, result, scratch_of_product,
                   packs_ ? packed.weight : nullptr});
    if (x == y) std::memcpy(y, result, static_cast<size_t>(result_bytes_));
  }

  const char* description() const override { return description_.c_str(); }

 private:
  struct Packed {
    void *weight, *bias;
  };
  template <class T>
  void fold(const pg_launch& launch, const Packed& packed) {
    const ProductShape& s = net_.shape;
    std::vector<double> scale, shift;
    fold_.read(launch, scale, shift);
    std::vector<T> room(packs_ ? static_cast<size_t>(s.n * s.k) : 0);
    T* folded = packs_ ? room.data() : static_cast<T*>(packed.weight);
    const auto* weight = pg::input<const T>(launch, positions_[net_.weight]);
    for (int64_t j = 0; j < s.n; j++) {
      const double by = scale[static_cast<size_t>(j)];
      for (int64_t p = 0; p < s.k; p++)
        folded[j * s.k + p] = store<T>(static_cast<float>(load<T>(weight[j * weight_row_ + p * weight_column_]) * by));
      static_cast<T*>(packed.bias)[j] = store<T>(static_cast<float>(shift[static_cast<size_t>(j)]));
    }
    if (packs_) product_->pack(folded, packed.weight);
  }
  Packed place(Scratch& scratch) const {
    void* weight = scratch.take(weight_bytes_);
    return {weight, scratch.take(static_cast<uint64_t>(net_.shape.n) * element_)};
  }

  LinearNet net_;
  std::vector<uint32_t> positions_;
  NetFold fold_;
  std::unique_ptr<Product> product_;
  int64_t weight_row_ = 0, weight_column_ = 0;
  uint64_t element_ = 0, weight_bytes_ = 0, result_bytes_ = 0;  // of a result aside, where it may have to lie over x
  bool packs_ = false;                                          // the weight lies in the product's own layout
  std::string description_;
};

}  // namespace

std::vector<uint32_t> find_linear_nets(const Region& region) {
  std::vector<uint32_t> found(region.node_count(), 0);
  if (!region.frozen() || deterministic()) return found;  // whose bits are then eager code's
  std::vector<uint32_t> reads(region.raw->value_count, 0), reader(reads);
  for (uint32_t n = 0; n < region.node_count(); n++) {
    const pg_node& node = region.node(n);
    for (uint32_t i = 0; i < node.input_count; i++)
      if (node.inputs[i] != PG_VALUE_NONE) reads[node.inputs[i]]++, reader[node.inputs[i]] = n;
  }
  uint32_t count = 0;
  for (uint32_t n = 0; n < region.node_count(); n++) {
    std::optional<LinearNet> net;
    try {
      net = read_linear_layer(region, n);
    } catch (const Error&) {
      continue;
    }
    std::vector<uint32_t> nodes = {n};
    while (reads[net->y] == 1) {
      const uint32_t next = reader[net->y];
      if (!goes_on(region, next, *net)) break;
      nodes.push_back(next);
    }
    if (net->norms.empty()) continue;
    count++;
    for (uint32_t part : nodes) found[part] = count;
  }
  return found;
}

bool is_linear_net(const Region& piece) {
  for (uint32_t n = 0; n < piece.node_count(); n++)
    if (is_norm(piece.node(n).op->name)) return true;
  return false;
}

Kernel* make_linear_net(const Region& piece, Plan& plan) {
  LinearNet net = read_linear_layer(piece, 0);
  for (uint32_t n = 1; n < piece.node_count(); n++)
    if (!goes_on(piece, n, net)) fail_support("its norms are in another piece");
  if (net.norms.empty() || piece.raw->output_count != 1 || piece.raw->outputs[0] != net.y)
    fail_support("a result inside is wanted");
  return onednn::translate("linear", [&]() -> Kernel* { return new LinearNetKernel(piece, net, plan); });
}

}  // namespace pg::cpu
