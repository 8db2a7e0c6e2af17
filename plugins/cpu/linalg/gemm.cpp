// SPDX-License-Identifier: Apache-2.0
// Panels of b (k x columns, L1 or L2) times panels of a (rows x k, L2), as in Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication".
#include "linalg/gemm.hpp"

#include <algorithm>

#include "linalg/dense.hpp"
#include "linalg/isa.hpp"
#include "linalg/microkernel.hpp"
#include "linalg/panels.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kDepthBytes = 3072;              // of a row of a block: deeper ones are added up in memory,
constexpr int64_t kPanelWidth = 64;                // where b's panels are that many bytes wide; half if twice as many
constexpr int64_t kBlockBytes = 256 << 10;         // of a block of a
constexpr int64_t kLazyBytes = 2 << 20;            // of all of a, where b is packed on the way
constexpr int64_t kMostRows = 384, kChunk = 32;    // rows of a block; panels whose sums wait for more
constexpr int64_t kPassBytes = int64_t{32} << 20;  // of b, packed before it is used
constexpr int64_t kSlabBytes = 4 << 20;            // of a depth of b, which stays in the caches between blocks of rows
constexpr int64_t kSliceWork = int64_t{1} << 18;   // multiplications that are worth a thread
constexpr int64_t kTogether = 2, kPackDepth = 64;  // panels and depths that are packed together
constexpr int64_t kPackCost = 16, kPackGrain = 8192;  // multiplications that packing an element takes; elements

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Calls body(p, depth) for pieces of a depth. Where panels lie across memory, so few positions that what has been
// fetched for one panel is still there for its neighbours.
template <class Body>
void for_pieces(bool across, int64_t depth, Body&& body) {
  const int64_t piece = across ? kPackDepth : depth;
  for (int64_t p = 0; p < depth; p += piece) body(p, std::min(piece, depth - p));
}

template <class T>
using Packer = void (*)(const T*, int64_t, int64_t, int64_t, int64_t, Accumulator<T>*);

template <class T>
struct Packers {
  Packer<T> a, b;
};
template <class T>
Packers<T> packers() {
  constexpr int kColumns = 64 / sizeof(Accumulator<T>);
  if (isa() == Isa::kAvx512) return {pack_panel<T, 12>, pack_panel<T, 2 * kColumns>};
  return {pack_panel<T, 6>, pack_panel<T, kColumns>};
}

}  // namespace

template <class T>
struct Gemm<T>::Operands {
  Matrix<const T> a, b;
  Matrix<T> c;
  Finish<T> finish;
  const Sum* bias;    // dense, zeros behind the last column; NULL: none
  const Sum* packed;  // panels `first` to `last` of b; NULL: packed on the way
  int64_t first, last;
  char* rooms;                          // of the slices
  const PanelSource* source = nullptr;  // of b's panels, in place of b
};

// What one slice works in.
template <class T>
struct Gemm<T>::Room {
  Sum *a, *b, *sums;
  Room(const Gemm& g, Scratch scratch, uint64_t* bytes = nullptr) {
    auto take = [&](int64_t count) {
      return static_cast<Sum*>(scratch.take(static_cast<uint64_t>(count) * sizeof(Sum)));
    };
    a = take(g.block_rows_ * (g.lazy_ ? g.k_ : g.depth_) + kPanelSlack);
    b = take(g.lazy_ ? kTogether * g.columns_ * g.depth_ : 0);
    sums = take(g.block_rows_ * g.columns_ * g.chunk_);
    if (bytes != nullptr) *bytes = scratch.bytes();
  }
};

template <class T>
Gemm<T>::Gemm(int64_t m, int64_t n, int64_t k, int64_t threads) : m_(m), n_(n), k_(k) {
  const Microkernel<Sum>& kernel = microkernel<Sum>();
  rows_ = kernel.rows, columns_ = kernel.columns;
  row_panels_ = parts(m, rows_), column_panels_ = parts(n, columns_);
  choose_grid(std::clamp<int64_t>(m * n * k / kSliceWork, 1, threads));
  choose_blocks();
}

// Fewest multiplications for the thread that has most, and little packing of a by more than one.
template <class T>
void Gemm<T>::choose_grid(int64_t threads) {
  int64_t best = INT64_MAX;
  for (int64_t down = 1; down <= std::min(threads, row_panels_); down++) {
    int64_t across = std::min(threads / down, column_panels_);
    int64_t rows = parts(row_panels_, down) * rows_, columns = parts(column_panels_, across) * columns_;
    int64_t cost = rows * (columns + kPackCost);
    if (cost < best) best = cost, down_ = down, across_ = across;
  }
}

template <class T>
void Gemm<T>::choose_blocks() {
  constexpr int64_t bytes = sizeof(Sum);
  int64_t rows = parts(row_panels_, down_) * rows_, deep = kDepthBytes * kPanelWidth / (columns_ * bytes * bytes);
  depth_ = parts(k_, parts(k_, deep));
  lazy_ = down_ == 1 && rows <= kMostRows && rows * k_ * bytes <= kLazyBytes;
  int64_t most = std::clamp(kBlockBytes / (depth_ * bytes), 4 * rows_, kMostRows);
  if (lazy_) most = rows;
  block_rows_ = parts(parts(rows, parts(rows, most)), rows_) * rows_;
  chunk_ = depth_ == k_ ? 1 : std::min(kChunk, column_panels_);
  pass_ = std::clamp<int64_t>(kPassBytes / (columns_ * k_ * bytes), 1, column_panels_);
  const bool whole = n_ % columns_ == 0 && m_ % (rows_ / 3) == 0;
  slabs_ = !lazy_ && whole && k_ >= 2 * depth_ && column_panels_ * columns_ * depth_ * bytes <= kSlabBytes;
}

template <class T>
int64_t Gemm<T>::panel_elements() const {
  return columns_ * k_;
}
template <class T>
uint64_t Gemm<T>::packed_bytes() const {
  return static_cast<uint64_t>(column_panels_ * panel_elements()) * sizeof(Sum);
}
template <class T>
uint64_t Gemm<T>::room_bytes() const {
  uint64_t bytes;
  Room(*this, Scratch(), &bytes);
  return scratch_bytes(bytes);
}

template <class T>
uint64_t Gemm<T>::workspace() const {
  Scratch scratch;
  scratch.take(static_cast<uint64_t>(column_panels_ * columns_) * sizeof(Sum));
  if (!lazy_) scratch.take(static_cast<uint64_t>(pass_ * panel_elements()) * sizeof(Sum));
  scratch.take(room_bytes() * static_cast<uint64_t>(down_ * across_));
  return scratch.bytes();
}

// Panels of `depth` from p on: of rows of a, of columns of b.
template <class T>
void Gemm<T>::pack_rows(Matrix<const T> a, int64_t top, int64_t rows, int64_t p, int64_t depth, Sum* target) const {
  const Packer<T> pack = packers<T>().a;
  const RowTiles tiles(rows, rows_);
  for_pieces(a.row == 1, depth, [&](int64_t at, int64_t count) {
    for (int64_t i = 0; i < tiles.count(); i++) {
      const T* from = a.data + (top + tiles.begin(i)) * a.row + (p + at) * a.column;
      pack(from, a.row, a.column, tiles.rows(i), count, target + (i * depth + at) * rows_);
    }
  });
}
template <class T>
void Gemm<T>::pack_columns(const Operands& o, int64_t begin, int64_t end, int64_t p, int64_t depth, Sum* target,
                           int64_t step) const {
  if constexpr (std::is_same_v<Sum, float>) {
    if (o.source != nullptr) {
      for (int64_t i = begin; i < end; i++)
        o.source->fill(o.source->state, i * columns_, columns_, p, depth, target + (i - begin) * step);
      return;
    }
  }
  const Matrix<const T> b = o.b;
  const Packer<T> pack = packers<T>().b;
  for_pieces(b.column == 1, depth, [&](int64_t at, int64_t count) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t j = i * columns_;
      const T* from = b.data + j * b.column + (p + at) * b.row;
      pack(from, b.column, b.row, std::min(columns_, n_ - j), count, target + (i - begin) * step + at * columns_);
    }
  });
}

template <class T>
void Gemm<T>::pack_panels(const Operands& o, int64_t begin, int64_t end, Sum* target) const {
  parallel_for(end - begin, std::max<int64_t>(1, kPackGrain / panel_elements()), [&, this](int64_t from, int64_t to) {
    pack_columns(o, begin + from, begin + to, 0, k_, target + from * panel_elements(), panel_elements());
  });
}
template <class T>
void Gemm<T>::pack(Matrix<const T> b, void* target) const {
  Operands o{};
  o.b = b;
  pack_panels(o, 0, column_panels_, static_cast<Sum*>(target));
}

template <class T>
void Gemm<T>::run(Matrix<const T> a, Matrix<const T> b, const void* packed, Matrix<T> c, const Finish<T>& finish,
                  void* workspace) const {
  Operands o{a, b, c, finish, nullptr, static_cast<const Sum*>(packed), 0, column_panels_, nullptr};
  run(o, workspace);
}
template <class T>
void Gemm<T>::run(Matrix<const T> a, const PanelSource& b, Matrix<T> c, const Finish<T>& finish,
                  void* workspace) const {
  Operands o{a, {}, c, finish, nullptr, nullptr, 0, column_panels_, nullptr, &b};
  run(o, workspace);
}

template <class T>
void Gemm<T>::run(Operands& o, void* workspace) const {
  const Finish<T>& finish = o.finish;
  const bool packed = o.packed != nullptr;
  Scratch scratch(workspace);
  auto* bias = static_cast<Sum*>(scratch.take(static_cast<uint64_t>(column_panels_ * columns_) * sizeof(Sum)));
  Sum* room =
      lazy_ ? nullptr : static_cast<Sum*>(scratch.take(static_cast<uint64_t>(pass_ * panel_elements()) * sizeof(Sum)));
  o.rooms = static_cast<char*>(scratch.take(0));
  if (finish.bias != nullptr) {
    for (int64_t j = 0; j < n_; j++) bias[j] = load<T>(finish.bias[j * finish.bias_stride]);
    std::fill(bias + n_, bias + column_panels_ * columns_, Sum(0));
  }
  o.bias = finish.bias != nullptr ? bias : nullptr;
  if (slabs_ && !packed && writes_through(o, column_panels_ - 1)) return run_slabs(o, room);
  const int64_t pass = packed || lazy_ ? column_panels_ : pass_;
  for (o.first = 0; o.first < column_panels_; o.first += pass) {
    o.last = std::min(o.first + pass, column_panels_);
    if (!packed && !lazy_) pack_panels(o, o.first, o.last, room), o.packed = room;
    parallel_for(down_ * across_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) slice(o, i);
    });
  }
}

template <class T>
typename Gemm<T>::Part Gemm<T>::part_of(int64_t index, int64_t first, int64_t last) const {
  const int64_t y = index / across_, x = index % across_, panels = last - first;
  return {row_panels_ * y / down_ * rows_, std::min(m_, row_panels_ * (y + 1) / down_ * rows_),
          first + panels * x / across_, first + panels * (x + 1) / across_};
}

// One depth of b after another, by all rows: what has been packed of b is used before it leaves the caches, and c takes
// up the sums.
template <class T>
void Gemm<T>::run_slabs(const Operands& o, Sum* room) const {
  for (int64_t p = 0; p < k_; p += depth_) {
    const int64_t depth = std::min(depth_, k_ - p), panel = columns_ * depth;
    parallel_for(column_panels_, std::max<int64_t>(1, kPackGrain / panel), [&, this](int64_t begin, int64_t end) {
      pack_columns(o, begin, end, p, depth, room + begin * panel, panel);
    });
    parallel_for(down_ * across_, 1, [&, this](int64_t first, int64_t last) {
      for (int64_t index = first; index < last; index++) {
        const Part part = part_of(index, 0, column_panels_);
        const Room own(*this, Scratch(o.rooms + room_bytes() * static_cast<uint64_t>(index)));
        for (int64_t i = part.top; i < part.bottom && part.begin < part.end; i += block_rows_) {
          const int64_t rows = std::min(block_rows_, part.bottom - i);
          pack_rows(o.a, i, rows, p, depth, own.a);
          for (int64_t j = part.begin; j < part.end; j++)
            multiply_panel(o, own.a, room + j * panel, own.sums, i, rows, j, p);
        }
      }
    });
  }
}

// One thread's part of c, in blocks of rows.
template <class T>
void Gemm<T>::slice(const Operands& o, int64_t index) const {
  const Part part = part_of(index, o.first, o.last);
  const Room room(*this, Scratch(o.rooms + room_bytes() * static_cast<uint64_t>(index)));
  for (int64_t i = part.top; i < part.bottom && part.begin < part.end; i += block_rows_)
    block(o, room, i, std::min(block_rows_, part.bottom - i), part.begin, part.end);
}

// Rows `top` on of c, columns of the panels `begin` to `end`.
template <class T>
void Gemm<T>::block(const Operands& o, const Room& room, int64_t top, int64_t rows, int64_t begin, int64_t end) const {
  const int64_t chunk = depth_ == k_ ? end - begin : chunk_;
  for (int64_t from = begin; from < end; from += chunk) {
    for (int64_t p = 0; p < k_; p += depth_) {
      const int64_t depth = std::min(depth_, k_ - p);
      Sum* a = room.a + (lazy_ ? p * block_rows_ : 0);
      if (!lazy_ || from == begin) pack_rows(o.a, top, rows, p, depth, a);
      const int64_t to = std::min(from + chunk, end);
      for (int64_t next = from; next < to; next++) {
        const int64_t panel = o.finish.backwards && o.packed != nullptr ? from + to - 1 - next : next;
        const Sum* b = o.packed + (panel - o.first) * panel_elements() + p * columns_;
        if (o.packed == nullptr) {
          const int64_t at = (panel - from) % kTogether, step = columns_ * depth_;
          if (at == 0) pack_columns(o, panel, std::min(panel + kTogether, to), p, depth, room.b, step);
          b = room.b + at * step;
        }
        Sum* sums = room.sums + (depth_ == k_ ? 0 : (panel - from) * block_rows_ * columns_);
        multiply_panel(o, a, b, sums, top, rows, panel, p);
        if (p + depth == k_) finish_panel(o, sums, top, rows, panel);
      }
    }
  }
}

// Whether sums go straight into c, where a microtile fits.
template <class T>
bool Gemm<T>::writes_through(const Operands& o, int64_t panel) const {
  if constexpr (std::is_same_v<T, Sum>) {
    return o.c.column == 1 && o.finish.activation == nullptr && (panel + 1) * columns_ <= n_;
  }
  return false;
}

template <class T>
void Gemm<T>::multiply_panel(const Operands& o, const Sum* a, const Sum* b, Sum* sums, int64_t top, int64_t rows,
                             int64_t panel, int64_t p) const {
  const Microkernel<Sum>& kernel = microkernel<Sum>();
  const bool through = writes_through(o, panel);
  Tile<Sum> tile{std::min(depth_, k_ - p), nullptr, b, nullptr, 0, nullptr, false};
  if (o.bias != nullptr && p == 0) tile.first = o.bias + panel * columns_;
  const RowTiles tiles(rows, rows_);
  for (int64_t i = 0; i < tiles.count(); i++) {
    const int64_t height = tiles.rows(i), begin = tiles.begin(i);
    tile.a = a + i * rows_ * tile.depth, tile.c = sums + begin * columns_, tile.step = columns_, tile.add = p > 0;
    if constexpr (std::is_same_v<T, Sum>) {
      if (through && tiles.fits(height)) {
        tile.c = o.c.data + (top + begin) * o.c.row + panel * columns_, tile.step = o.c.row;
        tile.add = p > 0 || o.finish.add;
      }
    }
    kernel.multiply[(height * 3 - 1) / rows_](tile);
  }
}

template <class T>
void Gemm<T>::finish_panel(const Operands& o, Sum* sums, int64_t top, int64_t rows, int64_t panel) const {
  const int64_t written = writes_through(o, panel) ? RowTiles(rows, rows_).fitting() : 0, j = panel * columns_;
  if (written == rows) return;
  if (o.finish.activation != nullptr) o.finish.activation(sums, sums, rows * columns_, nullptr);
  Matrix<T> c{o.c.data + (top + written) * o.c.row + j * o.c.column, o.c.row, o.c.column};
  write_sums<T>(sums + written * columns_, columns_, rows - written, std::min(columns_, n_ - j), c, o.finish.add);
}

template class Gemm<float>;
template class Gemm<double>;
template class Gemm<BFloat16>;
template class Gemm<Half>;
template class Gemm<int64_t>;
template class Gemm<int32_t>;
template class Gemm<int16_t>;
template class Gemm<int8_t>;
template class Gemm<uint8_t>;

}  // namespace pg::cpu
