// SPDX-License-Identifier: Apache-2.0
#include "scatter.hpp"

#include <algorithm>

namespace cpu {
namespace {

// Elements go the other way: what is in the target is written into the source.
constexpr Fold kRead = static_cast<Fold>(-1);

template <Fold fold, class T, class From>
void put(T& to, From& from) {
  if constexpr (fold == kRead) {
    from = to;
  } else if constexpr (fold == Fold::write) {
    to = from;
  } else if constexpr (fold == Fold::largest) {  // NaN stays
    to = from > to || from != from ? from : to;
  } else if constexpr (fold == Fold::smallest) {
    to = from < to || from != from ? from : to;
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {  // wraps around
    auto a = static_cast<uint64_t>(to), b = static_cast<uint64_t>(from);
    to = static_cast<T>(fold == Fold::add ? a + b : a * b);
  } else {
    to = static_cast<T>(fold == Fold::add ? to + from : to * from);
  }
}

template <Fold fold, class T>
struct Scatter {
  using From = std::conditional_t<fold == kRead, T, const T>;
  const ScatterPlan& p;
  T* target;
  From* source;
  const int64_t* index;
  int64_t low = 0, span = INT64_MAX;  // only indices in [low, low + span) are looked at

  bool skips(int64_t at) const { return static_cast<uint64_t>(at - low) >= static_cast<uint64_t>(span); }

  // n elements that follow each other with these strides.
  void run(T* to, From* from, const int64_t* at, int64_t n, int64_t to_step, int64_t from_step, int64_t at_step) const {
    int64_t scale = p.step[ScatterPlan::target];
    if (at_step == 0) {
      if (skips(*at)) return;
      to += *at * scale;
      if (to_step == 1 && from_step == 1)
        for (int64_t k = 0; k < n; k++) put<fold>(to[k], from[k]);
      else
        for (int64_t k = 0; k < n; k++) put<fold>(to[k * to_step], from[k * from_step]);
      return;
    }
    if (span == INT64_MAX) {
      for (int64_t k = 0; k < n; k++) put<fold>(to[k * to_step + at[k * at_step] * scale], from[k * from_step]);
      return;
    }
    for (int64_t k = 0; k < n; k++)
      if (!skips(at[k * at_step])) put<fold>(to[k * to_step + at[k * at_step] * scale], from[k * from_step]);
  }

  // All i for the inner positions [begin, end) of one b. Not inlined: its callers are four, for each type and fold.
  [[gnu::noinline]] void slab(int64_t b, int64_t begin, int64_t end) const {
    T* to = target + p.before.offset(0, b);
    From* from = source + p.before.offset(1, b);
    const int64_t* at = index + p.before.offset(2, b);
    const auto& step = p.step;
    if (p.inner.count == 1) return run(to, from, at, p.count, 0, step[1], step[2]);
    for (int64_t i = 0; i < p.count; i++) {
      for (int64_t k = begin, n = 0; k < end; k += n) {
        n = std::min(end - k, p.inner.inner() - k % p.inner.inner());
        run(to + p.inner.offset(0, k), from + i * step[1] + p.inner.offset(1, k),
            at + i * step[2] + p.inner.offset(2, k), n, p.inner.inner_stride(0), p.inner.inner_stride(1),
            p.inner.inner_stride(2));
      }
    }
  }
};

template <Fold fold, class T>
void scatter_as(const ScatterPlan& p, void* target, const void* source, const int64_t* index) {
  Scatter<fold, T> all{p, static_cast<T*>(target), static_cast<const T*>(source), index};
  int64_t inner = p.inner.count, threads = pg::thread_count();
  auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) all.slab(b, 0, inner);
  };
  if (p.before.count * p.count * inner <= kGrain || threads == 1) return rows(0, p.before.count);
  if (p.before.count >= threads && p.split_before)
    return pg::parallel_for(p.before.count, std::max<int64_t>(1, kGrain / (p.count * inner)), rows);
  if (inner >= 64 * threads) {
    return pg::parallel_for(inner, std::max<int64_t>(64, kGrain / p.count), [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < p.before.count; b++) all.slab(b, begin, end);
    });
  }
  // Every thread looks at all indices and takes those of its part of the target.
  int64_t part = (p.limit + threads - 1) / threads;
  pg::parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    Scatter<fold, T> own = all;
    own.low = begin * part;
    own.span = (end - begin) * part;
    for (int64_t b = 0; b < p.before.count; b++) own.slab(b, 0, inner);
  });
}

template <class T>
void gather_as(const ScatterPlan& p, const void* target, void* source, const int64_t* index) {
  T* from = const_cast<T*>(static_cast<const T*>(target));
  T* to = static_cast<T*>(source);
  int64_t inner = p.inner.count;
  auto rows = [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) Scatter<kRead, T>{p, from, to, index}.slab(b, 0, inner);
  };
  if (p.before.count * p.count * inner <= kGrain) return rows(0, p.before.count);
  if (p.before.count >= 4 * pg::thread_count())
    return pg::parallel_for(p.before.count, std::max<int64_t>(1, kGrain / (p.count * inner)), rows);
  pg::parallel_for(p.count, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    ScatterPlan part = p;
    part.count = end - begin;
    Scatter<kRead, T> some{part, from, to + begin * p.step[1], index + begin * p.step[2]};
    for (int64_t b = 0; b < p.before.count; b++) some.slab(b, 0, inner);
  });
}

template <Fold fold>
void scatter_numbers(const ScatterPlan& p, Storage type, void* target, const void* source, const int64_t* index) {
  visit(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, pg::f16> && !std::is_same_v<T, pg::bf16>)
      scatter_as<fold, T>(p, target, source, index);
  });
}

}  // namespace

// An axis of a 0-dim tensor is taken as one of size 1.
ScatterPlan scatter_plan(const pg_tensor& target, const pg_tensor& source, const pg_tensor& index, uint32_t axis) {
  ScatterPlan plan;
  int64_t stride[3][PG_MAX_RANK], behind[3][PG_MAX_RANK];
  const pg_tensor* const all[3] = {&target, &source, &index};
  for (int k = 0; k < 3; k++) {
    for (uint32_t i = 0; i < index.rank; i++) stride[k][i] = all[k]->stride[i];
    for (uint32_t i = axis + 1; i < index.rank; i++) behind[k][i - axis - 1] = all[k]->stride[i];
    plan.step[k] = index.rank == 0 ? 1 : all[k]->stride[axis];
  }
  plan.count = index.rank == 0 ? 1 : index.shape[axis];
  plan.limit = target.rank == 0 ? 1 : target.shape[axis];
  plan.before = pg::make_nest<3>(index.rank == 0 ? 0 : axis, index.shape, stride, false);
  plan.inner = pg::make_nest<3>(index.rank == 0 ? 0 : index.rank - axis - 1, index.shape + axis + 1, behind, false);
  return plan;
}

void gather_elements(const ScatterPlan& plan, int bytes, const void* target, void* source, const int64_t* index) {
  if (plan.before.count * plan.count * plan.inner.count == 0) return;
  visit_bytes(bytes, [&](auto zero) { gather_as<decltype(zero)>(plan, target, source, index); });
}

void scatter_fold(const ScatterPlan& plan, Storage type, Fold fold, void* target, const void* source,
                  const int64_t* index) {
  if (plan.before.count * plan.count * plan.inner.count == 0) return;
  switch (fold) {
    case Fold::write:
      return visit_bytes(kStorageBytes[type],
                         [&](auto zero) { scatter_as<Fold::write, decltype(zero)>(plan, target, source, index); });
    case Fold::add: return scatter_numbers<Fold::add>(plan, type, target, source, index);
    case Fold::multiply: return scatter_numbers<Fold::multiply>(plan, type, target, source, index);
    case Fold::largest: return scatter_numbers<Fold::largest>(plan, type, target, source, index);
    case Fold::smallest: return scatter_numbers<Fold::smallest>(plan, type, target, source, index);
  }
}

}  // namespace cpu
