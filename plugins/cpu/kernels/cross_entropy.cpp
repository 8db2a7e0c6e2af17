// SPDX-License-Identifier: Apache-2.0
// Cross entropy of class numbers, and its gradient:
//   loss_i = -(1 - s) w[t_i] log p_i[t_i] - s/C sum_c w[c] log p_i[c]
// with label smoothing s; the mean divides by the sum of w[t_i]. Rows whose target is ignore_index count nowhere.
#include <cmath>

#include "axis_rows.hpp"
#include "index_values.hpp"
#include "softmax_row.hpp"

namespace cpu {
namespace {

enum Reduce { kMean, kSum, kNone };

int64_t class_axis(const pg_tensor& t) { return t.rank == 1 ? 0 : 1; }

// What both directions need: targets, class weights, options.
struct Common {
  Common(const pg::KernelCall& call, const pg_tensor& logits, uint32_t target, uint32_t weight, pg::Plan& plan)
      : classes(logits.shape[class_axis(logits)]),
        ignore(call.attr<int64_t>("ignore_index")),
        reduce(static_cast<Reduce>(call.attr<int>("reduction"))),
        smoothing(call.runtime<double>("label_smoothing")),
        target_input(target),
        weight_input(call.has(weight) ? weight : UINT32_MAX),
        targets(call.in(target)) {
    if (weight_input != UINT32_MAX) {
      weight_storage = storage_of(call.in(weight));
      weight_stride = call.in(weight).stride[0];
    }
    index_bytes = (targets.workspace() + 63) / 64 * 64;
    plan.workspace = index_bytes + static_cast<uint64_t>(targets.count() + weight_count()) * 8;
  }

  // Checked targets, and the weights of the classes in float64 (empty: all 1) behind them in the workspace.
  const int64_t* read_targets(const pg_launch& launch) const {
    auto* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* t = targets.read(pg::input(launch, target_input), scratch);
    targets.check(t, classes, "cross_entropy", {"target", 0}, ignore);
    return t;
  }
  // None where there is no target to look one up for: the classes may be very many.
  int64_t weight_count() const { return targets.count() == 0 ? 0 : classes; }
  double* rows(const pg_launch& launch) const {
    return reinterpret_cast<double*>(pg::host_pointer<char>(launch.workspace) + index_bytes);
  }
  const double* read_weights(const pg_launch& launch) const {
    double* weights = rows(launch) + targets.count();
    if (weight_input == UINT32_MAX) {
      std::fill_n(weights, weight_count(), 1.0);
    } else {
      const char* from = pg::input<const char>(launch, weight_input);
      for (int64_t c = 0; c < weight_count(); c++) {
        convert(weight_storage, sF64, from + c * weight_stride * kStorageBytes[weight_storage], weights + c, 1);
      }
    }
    return weights;
  }
  double total_weight(const int64_t* t, const double* weights) const {
    double total = 0;
    for (int64_t i = 0; i < targets.count(); i++) total += t[i] == ignore ? 0.0 : weights[t[i]];
    return total;
  }

  int64_t classes, ignore;
  Reduce reduce;
  pg::Runtime<double> smoothing;
  uint32_t target_input, weight_input;
  IndexValues targets;
  Storage weight_storage = sF32;
  int64_t weight_stride = 0;
  uint64_t index_bytes = 0;
};

void require_shapes(const pg::KernelCall& call, const pg_tensor& logits, uint32_t target, uint32_t weight) {
  require_all_dense(call);
  if (!is_float(storage_of(logits)) || !is_index(call.in(target)) || logits.rank == 0) refuse(call);
  if (call.in(target).rank + 1 != logits.rank) refuse(call);
  if (call.has(weight) && call.in(weight).rank != 1) refuse(call);
}

// A line whose elements are `step` apart.
template <class T>
struct Line {
  const T* start;
  int64_t step;
  double operator[](int64_t i) const { return static_cast<double>(start[i * step]); }
};

struct CrossEntropy final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_shapes(call, call.in(0), 1, 2);
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && !is_float(storage_of(call.out(i)))) refuse(call);
    }
  }
  CrossEntropy(const pg::KernelCall& call, pg::Plan& plan)
      : common_(call, call.in(0), 1, 2, plan), loss_storage_(storage_of(call.out(0))) {
    bool hidden = call.has_output(1);
    const pg_tensor* logs = hidden ? &call.out(1) : nullptr;
    const pg_tensor* losses = common_.reduce == kNone ? &call.out(0) : nullptr;
    rows_ = AxisRows<3>({&call.in(0), logs, losses}, class_axis(call.in(0)));
    hidden_ = hidden;
  }

  void launch(const pg_launch& launch) override {
    const int64_t* targets = common_.read_targets(launch);
    const double* weights = common_.read_weights(launch);
    double* losses = common_.rows(launch);
    double smoothing = common_.smoothing(launch);
    const void* x = pg::input(launch, 0);
    void* logs = hidden_ ? pg::output(launch, 1) : nullptr;
    auto cost = [=, this](int64_t i, auto line) { losses[i] = loss_of(line, targets[i], weights, smoothing); };
    rows_.storage(0) == sF64 ? each_line<double>(x, logs, cost) : each_line<float>(x, logs, cost);
    finish(launch, losses, targets, weights);
  }

 private:
  // Calls cost(i, line) with the log probabilities of each line, and writes them to `logs` where they are kept.
  template <class T, class Cost>
  void each_line(const void* x, void* logs, const Cost& cost) const {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr Storage type = kWide ? sF64 : sF32;
    int64_t n = rows_.length();
    const uint32_t which = hidden_ ? 0b11 : 0b01;
    rows_.each_tile(which, kLines<T>, [&](int64_t begin, int64_t end) {
      bool in_place = hidden_ && rows_.direct(1, type);
      std::vector<T> scratch(in_place && rows_.direct(0, type) ? 0 : static_cast<size_t>(n));
      for (int64_t i = begin, width = 1; i < end; i += width) {
        width = rows_.beside(which, i, end, kLines<T>);
        if (width > 1) {
          int64_t step;
          const T* tile =
              across<T>(rows_.line(0, x, i), hidden_ ? rows_.line(1, logs, i) : nullptr, width, scratch, step);
          for (int64_t j = 0; j < width; j++) cost(i + j, Line<T>{tile + j, step});
        } else if (rows_.are_short()) {
          LineTile<T> tile, buffer;
          width = std::min(kLines<T>, end - i);
          rows_.load_turned(0, x, i, width, buffer.element, tile.element);
          simd->softmax_lines[true][kWide](tile.element, kLines<T>, tile.element, kLines<T>, n, kLines<T>);
          if (hidden_) rows_.store_turned(1, logs, i, width, buffer.element, tile.element);
          for (int64_t j = 0; j < width; j++) cost(i + j, Line<T>{tile.element + j, kLines<T>});
        } else {
          auto* source = static_cast<const T*>(rows_.load(0, rows_.line(0, x, i), type, scratch.data()));
          void* target = hidden_ ? rows_.line(1, logs, i) : nullptr;
          T* line = in_place ? static_cast<T*>(target) : scratch.data();
          softmax_row(true, source, line, n);
          if (hidden_ && !in_place) rows_.store(1, target, type, line);
          cost(i, Line<T>{line, 1});
        }
      }
    });
  }
  // Log probabilities of lines that lie side by side: in `logs` where they are kept and in T, else in the scratch.
  template <class T>
  const T* across(const void* x, void* logs, int64_t width, std::vector<T>& scratch, int64_t& step) const {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr Storage type = kWide ? sF64 : sF32;
    auto size = static_cast<size_t>(rows_.length() * kLines<T>);
    if (scratch.size() < size) scratch.resize(size);
    int64_t x_step;
    const void* from = rows_.load_tile(0, x, type, width, scratch.data(), x_step);
    void* to = scratch.data();
    step = width;
    if (logs != nullptr) to = rows_.tile(1, logs, type, width, scratch.data(), step);
    simd->softmax_lines[true][kWide](from, x_step, to, step, rows_.length(), width);
    if (logs != nullptr) rows_.store_tile(1, logs, type, width, to);
    return static_cast<const T*>(to);
  }
  template <class T>
  double loss_of(const Line<T>& logs, int64_t target, const double* weights, double smoothing) const {
    if (target == common_.ignore) return 0;
    double loss = -weights[target] * logs[target];
    if (smoothing == 0) return loss;
    double spread = 0;
    for (int64_t c = 0; c < common_.classes; c++) spread -= weights[c] * logs[c];
    return (1 - smoothing) * loss + smoothing / static_cast<double>(common_.classes) * spread;
  }
  void finish(const pg_launch& launch, const double* losses, const int64_t* targets, const double* weights) const {
    char* out = pg::output<char>(launch, 0);
    if (common_.reduce == kNone) {
      for (int64_t i = 0; i < rows_.count(); i++) put_number(loss_storage_, losses[i], rows_.line(2, out, i));
      return;
    }
    double total = 0;
    for (int64_t i = 0; i < rows_.count(); i++) total += losses[i];
    if (common_.reduce == kMean) total /= common_.total_weight(targets, weights);
    put_number(loss_storage_, total, out);
  }

  Common common_;
  Storage loss_storage_;
  bool hidden_ = false;
  AxisRows<3> rows_;  // logits, log_probs, losses
};
PG_KERNEL("cross_entropy", CrossEntropy, 0, 0, 1u << 1);

struct CrossEntropyGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_shapes(call, call.in(1), 2, 3);
    if (!is_float(storage_of(call.in(0))) || !is_float(storage_of(call.out(0)))) refuse(call);
  }
  CrossEntropyGrad(const pg::KernelCall& call, pg::Plan& plan)
      : common_(call, call.in(1), 2, 3, plan), loss_storage_(storage_of(call.in(0))) {
    const pg_tensor* losses = common_.reduce == kNone ? &call.in(0) : nullptr;
    rows_ = AxisRows<3>({&call.out(0), &call.in(1), losses}, class_axis(call.in(1)));
  }

  void launch(const pg_launch& launch) override {
    const int64_t* targets = common_.read_targets(launch);
    const double* weights = common_.read_weights(launch);
    double smoothing = common_.smoothing(launch), all = 0;
    for (int64_t c = 0; c < common_.weight_count(); c++) all += weights[c];
    double divide = common_.reduce == kMean ? common_.total_weight(targets, weights) : 1.0;
    double each = smoothing / static_cast<double>(common_.classes);
    const char* flow = pg::input<const char>(launch, 0);
    const void* logs = pg::input(launch, 1);
    void* out = pg::output(launch, 0);
    Storage type = rows_.storage(0) == sF64 ? sF64 : sF32;
    double whole = 0;
    if (common_.reduce != kNone && rows_.count() > 0) convert(loss_storage_, sF64, flow, &whole, 1);
    rows_.each_tile(0b11, kLines<float>, [&](int64_t begin, int64_t end) {
      std::vector<char> scratch(rows_.are_short() ? 0 : static_cast<size_t>(rows_.length()) * 16);
      auto row_of = [&](int64_t i) {
        double upstream = whole;
        if (common_.reduce == kNone) convert(loss_storage_, sF64, rows_.line(2, flow, i), &upstream, 1);
        Row row{targets[i], upstream / divide,
                (1 - smoothing) * (targets[i] == common_.ignore ? 0 : weights[targets[i]]), each, 0};
        row.share = row.hit + each * all;
        if (targets[i] == common_.ignore) row.scale = 0, row.target = -1;
        return row;
      };
      Row tile[kMostLines];
      for (int64_t i = begin, width = 1; i < end; i += width) {
        width = type == sF64 ? 1 : rows_.beside(0b11, i, end, kLines<float>);
        if (width > 1) {
          for (int64_t j = 0; j < width; j++) tile[j] = row_of(i + j);
          across(tile, weights, rows_.line(1, logs, i), rows_.line(0, out, i), width, scratch);
          continue;
        }
        if (rows_.are_short()) {
          width = std::min(type == sF64 ? kLines<double> : kLines<float>, end - i);
          for (int64_t j = 0; j < width; j++) tile[j] = row_of(i + j);
          type == sF64 ? together<double>(tile, weights, logs, out, i, width)
                       : together<float>(tile, weights, logs, out, i, width);
          continue;
        }
        Row row = row_of(i);
        const void* source = rows_.load(1, rows_.line(1, logs, i), type, scratch.data());
        void* target = rows_.line(0, out, i);
        void* line = rows_.direct(0, type) ? target : scratch.data() + rows_.length() * 8;
        if (type == sF64)
          fill_row(row, weights, static_cast<const double*>(source), static_cast<double*>(line));
        else
          fill_row(row, weights, static_cast<const float*>(source), static_cast<float*>(line));
        if (line != target) rows_.store(0, target, type, line);
      }
    });
  }

 private:
  struct Row {
    int64_t target;
    double scale, hit, each, share;
  };
  // As fill_row, of lines that lie side by side.
  void across(const Row* tile, const double* weights, const void* logs, void* out, int64_t width,
              std::vector<char>& scratch) const {
    int64_t n = rows_.length(), from_step, to_step;
    auto half = static_cast<size_t>(n * kLines<float>) * sizeof(float);
    if (scratch.size() < 2 * half) scratch.resize(2 * half);
    char* copy = scratch.data() + half;
    auto* from = static_cast<const float*>(rows_.load_tile(1, logs, sF32, width, scratch.data(), from_step));
    auto* to = static_cast<float*>(rows_.tile(0, out, sF32, width, copy, to_step));
    float factor[kMostLines], spread[kMostLines];
    for (int64_t j = 0; j < width; j++) {
      factor[j] = static_cast<float>(tile[j].scale * tile[j].share);
      spread[j] = static_cast<float>(tile[j].scale * tile[j].each);
    }
    for (int64_t c = 0; c < n; c++) {
      float* row = to + c * to_step;
      simd->unary[pExp][kF32](from + c * from_step, row, width, nullptr);
      for (int64_t j = 0; j < width; j++) row[j] *= factor[j];
      if (tile[0].each != 0)
        for (int64_t j = 0; j < width; j++) row[j] -= spread[j] * static_cast<float>(weights[c]);
    }
    for (int64_t j = 0; j < width; j++) {
      float* column = to + j;
      if (tile[j].target < 0)
        for (int64_t c = 0; c < n; c++) column[c * to_step] = 0;
      else
        column[tile[j].target * to_step] -= static_cast<float>(tile[j].scale * tile[j].hit);
    }
    rows_.store_tile(0, out, sF32, width, copy);
  }
  // Short lines: their exponentials in one go.
  template <class T>
  void together(const Row* tile, const double* weights, const void* logs, void* out, int64_t i, int64_t count) const {
    LineTile<T> from, to;
    int64_t n = rows_.length();
    const T* block = rows_.load_lines(1, logs, i, count, from.element);
    T* result = rows_.target_lines(0, out, i, to.element);
    simd->unary[pExp][sizeof(T) == 8 ? kF64 : kF32](block, result, count * n, nullptr);
    for (int64_t j = 0; j < count; j++) finish_row(tile[j], weights, result + j * n);
    if (result == to.element) rows_.store_lines(0, out, i, count, to.element);
  }
  template <class T>
  void fill_row(const Row& row, const double* weights, const T* logs, T* out) const {
    simd->unary[pExp][sizeof(T) == 8 ? kF64 : kF32](logs, out, rows_.length(), nullptr);
    finish_row(row, weights, out);
  }
  // scale (share p[c] - each w[c] - hit [c = target]), in place of p
  template <class T>
  void finish_row(const Row& row, const double* weights, T* out) const {
    int64_t n = rows_.length();
    if (row.target < 0) return std::fill_n(out, n, T(0)), void();
    T factor = static_cast<T>(row.scale * row.share);
    for (int64_t c = 0; c < n; c++) out[c] *= factor;
    if (row.each != 0) {
      for (int64_t c = 0; c < n; c++) out[c] -= static_cast<T>(row.scale * row.each * weights[c]);
    }
    out[row.target] -= static_cast<T>(row.scale * row.hit);
  }

  Common common_;
  Storage loss_storage_;
  AxisRows<3> rows_;  // dlogits, log_probs, dloss
};
PG_KERNEL("cross_entropy_grad", CrossEntropyGrad);

}  // namespace
}  // namespace cpu
