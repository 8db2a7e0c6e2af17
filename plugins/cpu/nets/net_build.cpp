// SPDX-License-Identifier: Apache-2.0
// Steps as primitives, with the layouts that oneDNN chooses for convolutions and that others take over.
#include <algorithm>
#include <map>

#include "linalg/work.hpp"
#include "nets/net_kernel.hpp"

namespace pg::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;

Desc desc_of(const pg_tensor& t) { return operand_desc(ConvOperand(t), onednn::data_type(dtype_of(t))); }

int64_t count_of(const Desc& d) {
  int64_t count = 1;
  for (int64_t size : d.dims()) count *= size;
  return count;
}

void require_fast(const dnnl::primitive_desc_base& pd) {
  if (!onednn::is_fast(pd)) fail_support("oneDNN has no kernel but the reference one");
}

// A value in a layout.
struct Form {
  Desc desc;
  NetPlace place;
};

class Builder {
 public:
  explicit Builder(const Region& piece) : piece_(piece), positions_(launch_positions(piece)) {}
  NetProgram build();

 private:
  void add(const NetStep& step, size_t index);
  void add_convolution(const NetStep& step, size_t index);
  void add_tiles(const NetStep& step, const Winograd& winograd, size_t index);
  void add_pool(const NetStep& step, size_t index);
  void add_sum(const NetStep& step, size_t index);
  void add_function(const NetStep& step, size_t index);
  void add_scale(const NetStep& step, size_t index);
  void add_join(const NetStep& step, size_t index);
  NetOrder order_of_parts(const std::vector<uint32_t>& values, size_t index);
  void add_results(size_t index);

  // The value in the layout and type in which it was made, or came.
  Form form_of(uint32_t value, size_t index);
  // The same, of the net's type.
  Form form_computed(uint32_t value, size_t index);
  // The value in another layout: copied where nobody has asked for it before.
  Form form_in(uint32_t value, const Desc& wanted, size_t index);
  // The value, in rows where it lies in a layout that products do not know.
  Form form_known(uint32_t value, size_t index);
  // Where a step's result is to lie.
  Form make_form(uint32_t value, const Desc& desc, size_t index);
  // Where a sum's result is to lie, which holds `step.other` before. source: what the sum is added to is made of.
  Form make_summed(const NetStep& step, const Desc& desc, const NetPlace& source, size_t index);
  void use(const NetPlace& place, size_t index) {
    if (place.where == NetPlace::kBuffer) net_.memory.use(place.at, index);
  }
  void add_copy(const Form& from, const Form& to);
  void add_work(const dnnl::primitive& primitive, const Desc& scratchpad, std::vector<onednn::Step::Argument> arguments,
                std::vector<NetPlace> places, bool one_thread);
  uint64_t take_packed(uint64_t bytes);

  const Region& piece_;
  const std::vector<uint32_t> positions_;
  std::vector<size_t> last_read_;  // steps, by value; the number of steps where it is a result
  std::map<uint32_t, std::vector<Form>> forms_;
  onednn::DataType type_ = onednn::DataType::f32;  // that the net computes in
  uint32_t copies_ = 0;
  NetProgram net_;
};

NetProgram Builder::build() {
  const NetSteps net = join_net_steps(piece_);
  if (std::none_of(net.steps.begin(), net.steps.end(), [](const NetStep& s) { return s.weight != PG_VALUE_NONE; }))
    fail_support("no convolution");
  type_ = net_type(net.steps[0].dtype);
  last_read_.assign(piece_.raw->value_count, 0);
  for (size_t i = 0; i < net.steps.size(); i++) net.steps[i].each_read([&](uint32_t v) { last_read_[v] = i; });
  for (uint32_t i = 0; i < piece_.raw->output_count; i++) last_read_[piece_.raw->outputs[i]] = net.steps.size();
  for (size_t i = 0; i < net.steps.size(); i++) add(net.steps[i], i);
  add_results(net.steps.size());
  net_.memory.lay_out();
  net_.description =
      format("%u batch norms in weights, %u activations and %u sums in convolutions, %u copies between layouts",
             net.norms, net.functions, net.sums, copies_);
  return std::move(net_);
}

void Builder::add(const NetStep& step, size_t index) {
  switch (step.kind) {
    case NetKind::kConvolution: return add_convolution(step, index);
    case NetKind::kPool: return add_pool(step, index);
    case NetKind::kSum: return add_sum(step, index);
    case NetKind::kFunction: return add_function(step, index);
    case NetKind::kScale: return add_scale(step, index);
    case NetKind::kJoin: return add_join(step, index);
  }
}

// ---- where values lie ----

Form Builder::form_of(uint32_t value, size_t index) {
  std::vector<Form>& forms = forms_[value];
  if (forms.empty()) {
    if (positions_[value] == PG_VALUE_NONE) fail_support("a value that nobody makes");
    forms.push_back({desc_of(piece_.value(value)), {NetPlace::kInput, positions_[value]}});
  }
  use(forms[0].place, index);
  return forms[0];
}

Form Builder::form_in(uint32_t value, const Desc& wanted, size_t index) {
  const Form made = form_of(value, index);
  for (const Form& f : forms_[value]) {
    if (f.desc != wanted) continue;
    use(f.place, index);
    return f;
  }
  const Form other{wanted, {NetPlace::kBuffer, net_.memory.add(wanted.get_size(), index)}};
  add_copy(made, other);
  forms_[value].push_back(other);
  return other;
}

Form Builder::form_computed(uint32_t value, size_t index) {
  const Form made = form_of(value, index);
  if (made.desc.data_type() == type_) return made;
  const auto layout = NetLayout::of(made.desc);
  return form_in(value, in_order(made.desc.dims(), layout ? layout->order : NetOrder::kRows, type_), index);
}

Form Builder::form_known(uint32_t value, size_t index) {
  const Form made = form_computed(value, index);
  return NetLayout::of(made.desc) ? made : form_in(value, in_order(made.desc.dims(), NetOrder::kRows, type_), index);
}

Form Builder::make_form(uint32_t value, const Desc& desc, size_t index) {
  Form made{desc, {}};
  bool placed = false;
  for (uint32_t k = 0; k < piece_.raw->output_count && !placed; k++) {
    // What may lie over an input is written when all has been read.
    if (piece_.raw->outputs[k] != value || piece_.raw->overwrites[k] != 0 || desc_of(piece_.value(value)) != desc)
      continue;
    made.place = {NetPlace::kOutput, k};
    placed = true;
  }
  if (!placed) made.place = {NetPlace::kBuffer, net_.memory.add(desc.get_size(), index)};
  forms_[value].assign(1, made);
  return made;
}

Form Builder::make_summed(const NetStep& step, const Desc& desc, const NetPlace& source, size_t index) {
  const Form added = form_of(step.other, index);
  for (const Form& f : forms_[step.other]) {
    if (f.desc != desc || f.place.where != NetPlace::kBuffer || f.place == source || last_read_[step.other] != index)
      continue;
    const Form made = f;  // nobody else reads it
    use(made.place, index);
    forms_[step.y].assign(1, made);
    return made;
  }
  const Form made = make_form(step.y, desc, index);
  add_copy(added, made);
  return made;
}

void Builder::add_copy(const Form& from, const Form& to) {
  NetWork work;
  work.copy.emplace(from.desc, to.desc);
  work.places = {from.place, to.place};
  work.one_thread = count_of(from.desc) <= onednn::kSmallWork;
  net_.scratchpad_bytes = std::max(net_.scratchpad_bytes, work.copy->workspace());
  net_.works.push_back(std::move(work));
  copies_++;
}

void Builder::add_work(const dnnl::primitive& primitive, const Desc& scratchpad,
                       std::vector<onednn::Step::Argument> arguments, std::vector<NetPlace> places, bool one_thread) {
  arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  net_.scratchpad_bytes = std::max(net_.scratchpad_bytes, static_cast<uint64_t>(scratchpad.get_size()));
  NetWork work;
  work.step = onednn::Step(primitive, arguments);
  work.places = std::move(places);
  work.one_thread = one_thread;
  net_.works.push_back(std::move(work));
}

uint64_t Builder::take_packed(uint64_t bytes) {
  const uint64_t at = net_.packed_bytes;
  net_.packed_bytes += scratch_bytes(bytes);
  return at;
}

// ---- steps ----

void Builder::add_convolution(const NetStep& step, size_t index) {
  if (const auto winograd = find_net_winograd(step)) return add_tiles(step, *winograd, index);
  const bool one_thread = is_one_threads(step.shape);
  onednn::OneThread guard(one_thread);
  const auto pd = describe_net_convolution(step);
  const Form x = form_in(step.x, pd.src_desc(), index);
  const Form y =
      step.sums() ? make_summed(step, pd.dst_desc(), x.place, index) : make_form(step.y, pd.dst_desc(), index);
  NetWeights weights(piece_, positions_, step, pd.weights_desc());
  const uint64_t weight_at = take_packed(weights.weight_bytes()), bias_at = take_packed(weights.bias_bytes());
  std::vector<onednn::Step::Argument> arguments = {
      {DNNL_ARG_SRC, x.desc}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, y.desc}};
  std::vector<NetPlace> places = {x.place, {NetPlace::kPacked, weight_at}, y.place};
  if (step.has_bias()) {
    arguments.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
    places.push_back({NetPlace::kPacked, bias_at});
  }
  net_.weights.push_back({std::move(weights), weight_at, bias_at});
  add_work(dnnl::convolution_forward(pd), pd.scratchpad_desc(), std::move(arguments), std::move(places), one_thread);
}

void Builder::add_tiles(const NetStep& step, const Winograd& winograd, size_t index) {
  auto eights = [&](uint32_t v) { return in_order(desc_of(piece_.value(v)).dims(), NetOrder::kEights, type_); };
  const Form x = form_in(step.x, eights(step.x), index);
  const Form y =
      step.sums() ? make_summed(step, eights(step.y), x.place, index) : make_form(step.y, eights(step.y), index);
  NetWeights weights(piece_, positions_, step, winograd);
  const uint64_t weight_at = take_packed(weights.weight_bytes()), bias_at = take_packed(weights.bias_bytes());
  NetWork work;
  work.tiles = NetTiles{winograd, step.sums(), !step.posts.empty() && !step.posts.back().sum};
  work.places = {x.place, {NetPlace::kPacked, weight_at}, y.place};
  if (step.has_bias()) work.places.push_back({NetPlace::kPacked, bias_at});
  net_.weights.push_back({std::move(weights), weight_at, bias_at});
  net_.scratchpad_bytes = std::max(net_.scratchpad_bytes, winograd.workspace());
  net_.works.push_back(std::move(work));
}

void Builder::add_pool(const NetStep& step, size_t index) {
  using Algorithm = dnnl::algorithm;
  const NetPool& p = step.pool;
  const Form x = form_computed(step.x, index);
  const Desc given = desc_of(piece_.value(step.y));
  const ConvOperand from(piece_.value(step.x)), to(piece_.value(step.y));
  Dims stride, kernel, before, after;
  int64_t taps = 1;
  for (uint32_t axis = 2, i = 5 - from.rank; axis < from.rank; axis++, i++) {
    stride.push_back(p.stride[i]), kernel.push_back(p.kernel[i]), before.push_back(p.padding[i]);
    after.push_back((to.shape[axis] - 1) * p.stride[i] + p.kernel[i] - from.shape[axis] - p.padding[i]);
    taps *= p.kernel[i];
  }
  const Algorithm algorithm = !p.mean          ? Algorithm::pooling_max
                              : p.with_padding ? Algorithm::pooling_avg_include_padding
                                               : Algorithm::pooling_avg_exclude_padding;
  const bool one_thread = work_of({count_of(given), taps}) <= onednn::kSmallWork;
  onednn::OneThread guard(one_thread);
  const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, x.desc,
                                         onednn::any(given.dims(), type_), stride, kernel, before, after);
  const dnnl::pooling_forward::primitive_desc pd(desc, onednn::user_scratchpad(), onednn::engine());
  require_fast(pd);
  const Form y = make_form(step.y, pd.dst_desc(), index);
  add_work(dnnl::pooling_forward(pd), pd.scratchpad_desc(), {{DNNL_ARG_SRC, x.desc}, {DNNL_ARG_DST, y.desc}},
           {x.place, y.place}, one_thread);
}

void Builder::add_sum(const NetStep& step, size_t index) {
  uint32_t first = step.x, second = step.other;
  if (positions_[first] != PG_VALUE_NONE) std::swap(first, second);  // in the layout of what the net has made
  const Form a = form_computed(first, index), b = form_in(second, a.desc, index);
  const bool one_thread = count_of(a.desc) <= onednn::kSmallWork;
  onednn::OneThread guard(one_thread);
  const dnnl::binary::desc desc(dnnl::algorithm::binary_add, a.desc, b.desc, a.desc);
  const dnnl::binary::primitive_desc pd(desc, net_attributes(step.posts), onednn::engine());
  require_fast(pd);
  const Form y = make_form(step.y, pd.dst_desc(), index);
  add_work(dnnl::binary(pd), pd.scratchpad_desc(),
           {{DNNL_ARG_SRC_0, a.desc}, {DNNL_ARG_SRC_1, b.desc}, {DNNL_ARG_DST, y.desc}}, {a.place, b.place, y.place},
           one_thread);
}

void Builder::add_function(const NetStep& step, size_t index) {
  const Form x = form_computed(step.x, index);
  const NetFunction& f = step.posts[0].function;
  const bool one_thread = count_of(x.desc) <= onednn::kSmallWork;
  onednn::OneThread guard(one_thread);
  const dnnl::eltwise_forward::desc desc(dnnl::prop_kind::forward_inference, f.algorithm, x.desc, f.alpha, f.beta);
  const dnnl::eltwise_forward::primitive_desc pd(desc, onednn::user_scratchpad(), onednn::engine());
  require_fast(pd);
  const Form y = make_form(step.y, pd.dst_desc(), index);
  add_work(dnnl::eltwise_forward(pd), pd.scratchpad_desc(), {{DNNL_ARG_SRC, x.desc}, {DNNL_ARG_DST, y.desc}},
           {x.place, y.place}, one_thread);
}

void Builder::add_scale(const NetStep& step, size_t index) {
  const Form x = form_known(step.x, index), factor = form_known(step.other, index);
  const Form y = make_form(step.y, x.desc, index);
  NetWork work;
  work.scale.emplace(*NetLayout::of(x.desc), *NetLayout::of(factor.desc), type_ == onednn::DataType::bf16);
  work.places = {x.place, factor.place, y.place};
  net_.works.push_back(std::move(work));
}

// In the order of a part that the net has made, where it is one for all: of blocks that are whole.
NetOrder Builder::order_of_parts(const std::vector<uint32_t>& values, size_t index) {
  for (uint32_t v : values) {
    const auto layout = NetLayout::of(form_of(v, index).desc);
    if (!layout || layout->order == NetOrder::kRows) continue;
    auto fills = [&](uint32_t other) { return piece_.value(other).shape[1] % layout->block == 0; };
    if (layout->order == NetOrder::kPixels || std::all_of(values.begin(), values.end(), fills)) return layout->order;
  }
  return NetOrder::kRows;
}

void Builder::add_join(const NetStep& step, size_t index) {
  std::vector<uint32_t> values = {step.x};
  values.insert(values.end(), step.parts.begin(), step.parts.end());
  const bool one_thread = element_count(piece_.value(step.y)) <= onednn::kSmallWork;
  onednn::OneThread guard(one_thread);
  const NetOrder order = order_of_parts(values, index);
  std::vector<Desc> descs;
  std::vector<onednn::Step::Argument> arguments;
  std::vector<NetPlace> places;
  for (uint32_t v : values) {
    const Form part = form_in(v, in_order(form_of(v, index).desc.dims(), order, type_), index);
    arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(places.size()), part.desc});
    descs.push_back(part.desc), places.push_back(part.place);
  }
  const Desc joined = in_order(desc_of(piece_.value(step.y)).dims(), order, type_);
  const dnnl::concat::primitive_desc pd(joined, 1, descs, onednn::engine(), onednn::user_scratchpad());
  const Form y = make_form(step.y, joined, index);
  arguments.push_back({DNNL_ARG_DST, joined});
  places.push_back(y.place);
  add_work(dnnl::concat(pd), pd.scratchpad_desc(), std::move(arguments), std::move(places), one_thread);
}

void Builder::add_results(size_t index) {
  for (uint32_t k = 0; k < piece_.raw->output_count; k++) {
    const uint32_t value = piece_.raw->outputs[k];
    const Form made = form_of(value, index);
    if (made.place.where == NetPlace::kOutput) continue;
    add_copy(made, {desc_of(piece_.value(value)), {NetPlace::kOutput, k}});
  }
}

}  // namespace

NetProgram build_net(const Region& piece) { return Builder(piece).build(); }

}  // namespace pg::cpu
