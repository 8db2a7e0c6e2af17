// SPDX-License-Identifier: Apache-2.0
#include "data/element.hpp"

#include <atomic>
#include <cstring>

#include "base/ambient.hpp"
#include "tensor/staging.hpp"

namespace perigee {

namespace {

constexpr int kDeepest = 100;  // tables in tables

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  LayoutRef whole() {
    LayoutRef layout = value(0);
    if (at_ != text_.size()) damaged();
    return layout;
  }

 private:
  [[noreturn]] void damaged() const { pg::fail_argument(pg::format("the layout is damaged at byte %zu", at_)); }
  char next() {
    if (at_ >= text_.size()) damaged();
    return text_[at_++];
  }

  std::string key() {
    const size_t begin = at_;
    if (next() == 'i') {
      while (next() != ';') {
      }
    } else {
      size_t length = 0;
      for (char c = next(); c != ':'; c = next()) {
        if (c < '0' || c > '9' || length > text_.size()) damaged();
        length = length * 10 + static_cast<size_t>(c - '0');
      }
      if (length > text_.size() - at_) damaged();
      at_ += length;
    }
    return text_.substr(begin, at_ - begin);
  }

  LayoutRef value(int depth) {
    static std::atomic<uint64_t> last{0};
    const size_t begin = at_;
    auto made = std::make_shared<Layout>();
    made->id = ++last;
    made->kind = next();
    made->leaves = 1;
    if (made->kind == '{') {
      if (depth == kDeepest) pg::fail_argument("tables are nested too deep");
      made->leaves = 0;
      made->named = true;
      while (at_ < text_.size() && text_[at_] != '}') {
        std::string name = key();
        LayoutRef inner = value(depth + 1);
        made->leaves += inner->leaves;
        made->named = made->named && name[0] == 's';
        made->entries.push_back({std::move(name), std::move(inner)});
      }
      next();
      made->named = made->named && !made->entries.empty();
    } else if (std::strchr("TNBS", made->kind) == nullptr) {
      damaged();
    }
    made->text = text_.substr(begin, at_ - begin);
    return made;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

LayoutRef parse_layout(const std::string& text) { return Parser(text).whole(); }

TensorRef make_batch(const Tensor& like, int64_t count) {
  int64_t shape[PG_MAX_RANK + 1];
  shape[0] = count;
  for (uint32_t i = 0; i < like.meta->rank; i++) shape[i + 1] = like.meta->shape[i];
  const MetaRef meta = intern_meta(like.meta->dtype, like.meta->rank + 1, shape);
  if (ambient().bound_for != nullptr && like.device == &default_device()) {
    if (TensorRef made = make_staging(*ambient().bound_for, meta)) return made;
  }
  return make_dense(*like.device, meta, "batch");
}

void put_piece(Tensor& batch, int64_t index, Tensor& piece) {
  const int64_t bytes = piece.meta->bytes;
  if (bytes == 0) return;
  if (piece.meta->contiguous && piece.device->host_visible && piece.device->synchronous) {
    const pg_address from = piece.address(), to = batch.address();
    std::memcpy(reinterpret_cast<char*>(to.buffer + to.offset) + index * bytes,
                reinterpret_cast<const char*>(from.buffer + from.offset), static_cast<size_t>(bytes));
    return;
  }
  TensorRef target = make_tensor(dense_meta(*piece.meta, piece.meta->dtype), batch.storage,
                                 batch.offset + index * bytes, batch.device);
  copy_into(*target, piece, "batch");
}

}  // namespace perigee
