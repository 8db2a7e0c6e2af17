// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace cpu {
namespace {

int64_t position_of(const Acc& acc) {
  int64_t at;
  std::memcpy(&at, &acc.m2, sizeof at);
  return at;
}

}  // namespace

Reduction::Reduction(ReduceOp op, Finish finish, const pg_tensor& x, const pg_tensor& out, uint32_t axes,
                     double correction)
    : op_(op), finish_(finish), correction_(correction), from_(storage_of(x)), to_(storage_of(out)) {
  compute_ = kComputeOf[from_];
  block_ = simd->reduce[op][compute_];
  widens_ = from_ == sBF16 && simd->column_bf16[op] != nullptr;
  column_ = widens_ ? simd->column_bf16[op] : simd->column[op][compute_];
  int64_t kept_shape[PG_MAX_RANK], kept_stride[2][PG_MAX_RANK], reduced_shape[PG_MAX_RANK],
      reduced_stride[1][PG_MAX_RANK];
  uint32_t kept = 0, reduced = 0;
  // Outputs with ones in place of the reduced axes are x's dimensions aligned at the end; without, they follow in
  // order.
  uint32_t remaining = 0;
  for (uint32_t i = 0; i < x.rank; i++) remaining += (axes >> i & 1u) == 0;
  bool aligned = out.rank != remaining;
  for (uint32_t i = 0; i < x.rank; i++) {
    if (axes >> i & 1u) {
      reduced_shape[reduced] = x.shape[i];
      reduced_stride[0][reduced++] = x.stride[i];
    } else {
      uint32_t at = aligned ? i - (x.rank - out.rank) : kept;
      kept_shape[kept] = x.shape[i];
      kept_stride[0][kept] = out.stride[at];
      kept_stride[1][kept++] = x.stride[i];
    }
  }
  kept_ = pg::make_nest<2>(kept, kept_shape, kept_stride, true);
  bool by_position = finish == Finish::position;
  reduced_ = pg::make_nest<1>(reduced, reduced_shape, reduced_stride, !by_position);
  if (reduced_.count == 0 && (op == rAmax || op == rAmin || op == rArgmax || op == rArgmin) && kept_.count > 0) {
    pg::fail_argument("the largest or smallest of no elements is not defined");
  }
  in_columns_ = columns_pay();
  short_ = !in_columns_ && are_short();
}

// Many short stretches, one behind the other.
bool Reduction::are_short() const {
  if (compute_ > kF64 || simd->short_lines[op_][compute_] == nullptr) return false;
  int64_t n = reduced_.count;
  if (n < 1 || n > kShortLine || !reduced_.linear(0) || kept_.count < 4) return false;
  return kept_.rank == 1 && kept_.stride[1][0] == n;
}

bool Reduction::columns_pay() const {
  if (column_ == nullptr || kept_.rank == 0 || reduced_.count == 0) return false;
  if (finish_ != Finish::value && finish_ != Finish::mean) return false;
  return kept_.inner_stride(1) == 1 && kept_.inner() >= 8 && (reduced_.rank > 0 && reduced_.inner_stride(0) != 1);
}

void Reduction::run(const void* x, void* out) const {
  if (kept_.count == 0) return;
  if (short_)
    compute_ == kF64 ? run_short<double>(static_cast<const char*>(x), static_cast<char*>(out))
                     : run_short<float>(static_cast<const char*>(x), static_cast<char*>(out));
  else if (in_columns_)
    run_columns(static_cast<const char*>(x), static_cast<char*>(out));
  else
    run_rows(static_cast<const char*>(x), static_cast<char*>(out));
}

// ---- each output by itself ----

void Reduction::run_rows(const char* x, char* out) const {
  int from = kStorageBytes[from_], to = kStorageBytes[to_];
  int64_t chunks = std::max<int64_t>(1, (reduced_.count + kChunk - 1) / kChunk);
  if (chunks == 1) {
    auto piece = [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k++) {
        Acc acc;
        reduce_range(x + kept_.offset(1, k) * from, 0, reduced_.count, &acc);
        put(out + kept_.offset(0, k) * to, acc);
      }
    };
    if (kept_.count * reduced_.count <= kGrain) return piece(0, kept_.count);
    return pg::parallel_for(kept_.count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, reduced_.count)), piece);
  }
  std::vector<Acc> partial(static_cast<size_t>(kept_.count * chunks));
  pg::parallel_for(kept_.count * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t work = begin; work < end; work++) {
      int64_t k = work / chunks, first = work % chunks * kChunk;
      reduce_range(x + kept_.offset(1, k) * from, first, std::min(first + kChunk, reduced_.count),
                   &partial[static_cast<size_t>(work)]);
    }
  });
  for (int64_t k = 0; k < kept_.count; k++) {
    Acc total = partial[static_cast<size_t>(k * chunks)];
    for (int64_t c = 1; c < chunks; c++) merge(&total, partial[static_cast<size_t>(k * chunks + c)]);
    put(out + kept_.offset(0, k) * to, total);
  }
}

void Reduction::reduce_range(const char* x, int64_t begin, int64_t end, Acc* acc) const {
  int bytes = kStorageBytes[from_];
  bool linear = reduced_.linear(0);
  alignas(64) char raw[kBlock * 8];
  for (int64_t p = begin; p < end; p += kBlock) {
    int64_t n = std::min(kBlock, end - p);
    const char* block = x + p * bytes;
    if (!linear) {
      gather(x, bytes, reduced_.rank, reduced_.shape, reduced_.stride[0], p, n, raw);
      block = raw;
    }
    fold(block, n, p, acc);
  }
}

void Reduction::fold(const char* block, int64_t n, int64_t position, Acc* acc) const {
  const Storage type = kStorageOf[compute_];
  if (from_ == type) return block_(block, n, position, acc);
  alignas(64) char values[kBlock * 8];
  convert(from_, type, block, values, n);
  block_(values, n, position, acc);
}

void Reduction::run_lines(const char* x, char* out, int64_t begin, int64_t end) const {
  if (short_)
    return compute_ == kF64 ? short_stretches<double>(x, out, begin, end) : short_stretches<float>(x, out, begin, end);
  const int from = kStorageBytes[from_], to = kStorageBytes[to_];
  for (int64_t k = begin; k < end; k++) {
    Acc acc;
    reduce_range(x + kept_.offset(1, k) * from, 0, reduced_.count, &acc);
    put(out + kept_.offset(0, k) * to, acc);
  }
}

void Reduction::merge(Acc* into, const Acc& other) const {
  bool floating = compute_ <= kF64;
  Acc before = *into;
  into->count += other.count;
  switch (op_) {
    case rSum:
    case rNumbers:
    case rNonzeros:
    case rMagnitudes:
    case rSquares:
      into->f += other.f;
      into->i = static_cast<int64_t>(static_cast<uint64_t>(into->i) + static_cast<uint64_t>(other.i));
      break;
    case rProd:
      into->f *= other.f;
      into->i = static_cast<int64_t>(static_cast<uint64_t>(into->i) * static_cast<uint64_t>(other.i));
      break;
    case rAny: into->i = into->i != 0 || other.i != 0; break;
    case rAll: into->i = into->i != 0 && other.i != 0; break;
    case rAmax:
    case rAmin:
    case rAbsMax:
    case rAbsMin:
    case rArgmax:
    case rArgmin: {
      bool largest = op_ == rAmax || op_ == rAbsMax || op_ == rArgmax;
      bool better = floating ? (largest ? other.f > before.f : other.f < before.f) ||
                                   (std::isnan(other.f) && !std::isnan(before.f))
                             : (largest ? other.i > before.i : other.i < before.i);
      if (better) into->f = other.f, into->i = other.i, into->m2 = other.m2;
      break;
    }
    case rVar: {
      double a = static_cast<double>(before.count), b = static_cast<double>(other.count), delta = other.f - before.f;
      into->m2 += other.m2 + delta * delta * a * b / (a + b);
      into->f += delta * b / (a + b);
      break;
    }
    default: {  // logsumexp
      if (std::isnan(before.f)) break;
      double top = other.f > before.f || std::isnan(other.f) ? other.f : before.f;
      double shift = std::isinf(top) ? 0.0 : top;
      into->m2 = (before.m2 > 0 ? before.m2 * std::exp((std::isinf(before.f) ? 0.0 : before.f) - shift) : before.m2) +
                 (other.m2 > 0 ? other.m2 * std::exp((std::isinf(other.f) ? 0.0 : other.f) - shift) : other.m2);
      into->f = top;
    }
  }
}

void Reduction::put(char* out, const Acc& acc) const {
  bool floating = compute_ <= kF64;
  double n = static_cast<double>(acc.count);
  switch (finish_) {
    case Finish::value:
      if (acc.count == 0) return put_number(to_, op_ == rProd ? 1.0 : 0.0, out);
      if (floating) return put_number(to_, acc.f, out);
      return convert(sI64, to_, &acc.i, out, 1);
    case Finish::mean: return put_number(to_, (floating ? acc.f : static_cast<double>(acc.i)) / n, out);
    case Finish::truth: return put_number(to_, acc.count == 0 ? op_ == rAll : acc.i != 0, out);
    case Finish::position: {
      int64_t at = position_of(acc);
      return convert(sI64, to_, &at, out, 1);
    }
    case Finish::variance: return put_number(to_, acc.m2 / std::max(0.0, n - correction_), out);
    case Finish::deviation: return put_number(to_, std::sqrt(acc.m2 / std::max(0.0, n - correction_)), out);
    case Finish::root: return put_number(to_, std::sqrt(acc.f), out);
    case Finish::logsumexp:
      if (acc.count == 0) return put_number(to_, -std::numeric_limits<double>::infinity(), out);
      return put_number(to_, (std::isinf(acc.f) ? 0.0 : acc.f) + std::log(acc.m2), out);
  }
}

// ---- short stretches, many of them at a time ----

template <class T>
void Reduction::run_short(const char* x, char* out) const {
  auto piece = [=, this](int64_t begin, int64_t end) { short_stretches<T>(x, out, begin, end); };
  if (kept_.count * reduced_.count <= kGrain) return piece(0, kept_.count);
  pg::parallel_for(kept_.count, std::max<int64_t>(1, kGrain / reduced_.count), piece);
}

template <class T>
void Reduction::short_stretches(const char* x, char* out, int64_t begin, int64_t end) const {
  constexpr bool kWide = sizeof(T) == 8;
  constexpr Storage type = kWide ? sF64 : sF32;
  constexpr int64_t kRoom = kWide ? 1 : 4 * kBlock;  // converted elements: doubles are what they are
  const bool converts = from_ != type, places = finish_ == Finish::position;
  const Storage as = places ? sI64 : type;
  const int from = kStorageBytes[from_], to = kStorageBytes[to_];
  const int64_t n = reduced_.count, step = kept_.stride[0][0], most = converts ? std::min(kBlock, kRoom / n) : kBlock;
  alignas(64) T buffer[kRoom];
  alignas(64) char room[kBlock * 8];
  for (int64_t k = begin, count = 0; k < end; k += count) {
    count = std::min(most, end - k);
    const void* lines = x + k * n * from;
    if (converts) {
      convert(from_, type, lines, buffer, count * n);
      lines = buffer;
    }
    char* target = out + k * step * to;
    char* results = to_ == as && step == 1 ? target : room;
    simd->short_lines[op_][kWide](lines, count, n, results);
    T* r = reinterpret_cast<T*>(results);
    for (int64_t j = 0; j < count && finish_ == Finish::mean; j++) r[j] /= static_cast<T>(n);
    for (int64_t j = 0; j < count && finish_ == Finish::root; j++) r[j] = std::sqrt(r[j]);
    if (results == target) continue;
    if (step == 1) {
      convert(as, to_, results, target, count);
      continue;
    }
    for (int64_t j = 0; j < count; j++) convert(as, to_, results + j * kStorageBytes[as], target + j * step * to, 1);
  }
}

// ---- neighbouring outputs together ----

Reduction::ColumnCut::ColumnCut(int64_t columns, int64_t threads) {
  constexpr int64_t kWidest = 4096, kElements = 8192;
  const int64_t tiles = (columns + kTile - 1) / kTile;
  width = kTile * std::clamp<int64_t>((tiles + threads - 1) / threads, 1, kWidest / kTile);
  // A power of two, so that none crosses where sums go into double.
  while (rows < kRowsAtOnce && 2 * rows * width <= kElements) rows *= 2;
}

void Reduction::run_columns(const char* x, char* out) const {
  const int64_t inner = kept_.inner(), outer = kept_.count / inner;
  const int threads = kept_.count * reduced_.count <= kGrain ? 1 : pg::thread_count();
  const ColumnCut cut(inner, outer < threads ? threads : 1);
  const int64_t strips = (inner + cut.width - 1) / cut.width;
  auto piece = [&](int64_t begin, int64_t end) {
    std::vector<char> acc(static_cast<size_t>(cut.width) * 16);
    for (int64_t work = begin; work < end; work++) {
      const int64_t first = work % strips * cut.width;
      column_strip(x, out, work / strips * inner + first, std::min(cut.width, inner - first), cut.rows, acc.data());
    }
  };
  if (threads == 1) return piece(0, outer * strips);
  pg::parallel_for(outer * strips, std::max<int64_t>(1, kGrain / (cut.width * reduced_.count)), piece);
}

// Outputs [first, first + width), neighbours.
void Reduction::column_strip(const char* x, char* out, int64_t first, int64_t width, int64_t rows, char* room) const {
  int from = kStorageBytes[from_], to = kStorageBytes[to_];
  const char* start = x + kept_.offset(1, first) * from;
  int64_t count = reduced_.count, run = reduced_.inner(), step = reduced_.inner_stride(0);
  Columns columns{room + width * 8, reinterpret_cast<double*>(room)};
  if (run == count) {
    for (int64_t p = 0; p < count; p += rows)
      fold_columns(start + p * step * from, step, std::min(rows, count - p), width, &columns);
  } else {  // rows that do not follow each other evenly go into double where they break off
    for (int64_t p = 0, n = 0; p < count; p += n) {
      n = std::min({kRowsAtOnce, count - p, run - p % run});
      fold_columns(start + reduced_.offset(0, p) * from, step, n, width, &columns);
      columns.broken = true;
    }
  }
  put_columns(out + kept_.offset(0, first) * to, kept_.inner_stride(0), width, columns);
}

void Reduction::fold_columns(const char* rows, int64_t step, int64_t n, int64_t width, Columns* columns) const {
  switch (compute_) {
    case kF32: fold_as<float>(rows, step, n, width, columns); break;
    case kF64: fold_as<double>(rows, step, n, width, columns); break;
    case kI64: fold_as<int64_t>(rows, step, n, width, columns); break;
    default: fold_as<int32_t>(rows, step, n, width, columns);
  }
  columns->rows += n;
}

template <class T>
void Reduction::fold_as(const char* rows, int64_t step, int64_t n, int64_t width, Columns* columns) const {
  alignas(64) T converted[kRowsAtOnce * kTile];
  const int from = kStorageBytes[from_];
  const Storage type = kStorageOf[compute_];
  const bool converts = from_ != type && !widens_, first = columns->rows == 0;
  for (int64_t c = 0, w = 0; c < width; c += w) {
    w = converts ? std::min(kTile, width - c) : width;
    T* acc = reinterpret_cast<T*>(columns->acc) + c;
    const char* begin = rows + c * from;
    if (converts)
      for (int64_t i = 0; i < n; i++) convert(from_, type, begin + i * step * from, converted + i * w, w);
    const void* data = converts ? static_cast<const void*>(converted) : begin;
    if (op_ != rSum) {
      if (first && widens_) convert(from_, type, data, acc, w);
      if (first && !widens_) std::memcpy(acc, data, static_cast<size_t>(w) * sizeof(T));
    } else if (columns->broken || columns->rows % kRowsAtOnce == 0) {
      add_up<T>(w, c, *columns);
      std::fill_n(acc, w, T(0));
    }
    column_(data, converts ? w : step, n, w, acc);
  }
}

// What is in the compute type goes into double.
template <class T>
void Reduction::add_up(int64_t width, int64_t c, const Columns& columns) const {
  const T* acc = reinterpret_cast<const T*>(columns.acc) + c;
  double* total = columns.total + c;
  if (columns.rows == 0) return std::fill_n(total, width, 0.0), void();
  for (int64_t j = 0; j < width; j++) total[j] += static_cast<double>(acc[j]);
}

void Reduction::put_columns(char* out, int64_t step, int64_t width, const Columns& columns) const {
  const double scale = finish_ == Finish::mean ? 1.0 / static_cast<double>(reduced_.count) : 1.0;
  const Storage type = kStorageOf[compute_];
  const int to = kStorageBytes[to_], bytes = kStorageBytes[type];
  if (op_ == rSum) type == sF64 ? add_up<double>(width, 0, columns) : add_up<float>(width, 0, columns);
  for (int64_t j = 0; j < width; j++) {
    if (op_ == rSum)
      put_number(to_, finish_ == Finish::mean ? columns.total[j] * scale : columns.total[j], out + j * step * to);
    else
      convert(type, to_, columns.acc + j * bytes, out + j * step * to, 1);
  }
}

}  // namespace cpu
