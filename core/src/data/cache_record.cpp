// SPDX-License-Identifier: Apache-2.0
#include "data/cache_record.hpp"

#include <cstring>

namespace perigee {

namespace {

size_t padded(size_t size) { return (size + 7) / 8 * 8; }

class RecordWriter {
 public:
  void raw(const void* bytes, size_t size) {
    text_.append(static_cast<const char*>(bytes), size);
    text_.append(padded(size) - size, '\0');
  }
  template <class T>
  void value(T v) {
    raw(&v, sizeof v);
  }
  void tensor(Tensor& t) {
    if (!t.device->host_visible) pg::fail(PG_E_NOT_SUPPORTED, "a file keeps tensors of the cpu: cache before prefetch");
    const TensorRef dense = t.meta->contiguous ? TensorRef::share(&t) : copy_dense(t, t.meta->dtype);
    value(static_cast<uint64_t>(t.meta->dtype));
    value(static_cast<uint64_t>(t.meta->rank));
    raw(t.meta->shape, t.meta->rank * sizeof(int64_t));
    const size_t bytes = static_cast<size_t>(dense->meta->bytes), at = text_.size();
    text_.resize(at + padded(bytes));
    to_host(*dense, text_.data() + at);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class RecordReader {
 public:
  RecordReader(const char* bytes, size_t size) : at_(bytes), left_(size) {}
  const char* raw(uint64_t size) {
    if (size > left_ || padded(size) > left_) damaged();
    const char* found = at_;
    at_ += padded(size), left_ -= padded(size);
    return found;
  }
  template <class T>
  T value() {
    T v;
    std::memcpy(&v, raw(sizeof v), sizeof v);
    return v;
  }
  TensorRef tensor() {
    const auto dtype = value<uint64_t>(), rank = value<uint64_t>();
    if (dtype > UINT32_MAX || !is_dtype(static_cast<uint32_t>(dtype)) || rank > PG_MAX_RANK) damaged();
    int64_t shape[PG_MAX_RANK];
    int64_t elements = 1;
    for (uint64_t i = 0; i < rank; i++) {
      shape[i] = value<int64_t>();
      if (shape[i] < 0 || __builtin_mul_overflow(elements, shape[i], &elements)) damaged();
    }
    if (elements > static_cast<int64_t>(left_) * 8) damaged();
    const MetaRef meta = intern_meta(static_cast<uint32_t>(dtype), static_cast<uint32_t>(rank), shape);
    return from_host(meta->dtype, meta->rank, shape, raw(static_cast<uint64_t>(meta->bytes)), default_device());
  }
  [[noreturn]] static void damaged() { pg::fail(PG_E_DATA_LOSS, "it is damaged"); }
  bool is_over() const { return left_ == 0; }

 private:
  const char* at_;
  size_t left_;
};

// What leaves are, in the order of the layout.
void kinds_of(const Layout& layout, std::string& kinds) {
  if (layout.kind != '{') kinds += layout.kind;
  for (const Layout::Entry& entry : layout.entries) kinds_of(*entry.value, kinds);
}

std::string kinds_of(const Layout& layout) {
  std::string kinds;
  kinds_of(layout, kinds);
  return kinds;
}

}  // namespace

std::string to_bytes(const Element& element) {
  RecordWriter out;
  const std::string& text = element.layout->text;
  out.value(static_cast<uint64_t>(text.size()));
  out.raw(text.data(), text.size());
  const std::string kinds = kinds_of(*element.layout);
  for (size_t i = 0; i < kinds.size(); i++) {
    const Leaf& leaf = element.leaves[i];
    if (kinds[i] == 'T') {
      out.tensor(*leaf.tensor);
    } else if (kinds[i] == 'S') {
      out.value(static_cast<uint64_t>(leaf.text.size()));
      out.raw(leaf.text.data(), leaf.text.size());
    } else {
      out.value(leaf.number);
    }
  }
  return out.take();
}

Element from_bytes(const char* bytes, size_t size, LayoutRef& last) {
  RecordReader in(bytes, size);
  const auto length = in.value<uint64_t>();
  const char* text = in.raw(length);
  if (!last || last->text != std::string_view(text, length)) last = parse_layout(std::string(text, length));
  Element made{last, {}};
  for (const char kind : kinds_of(*last)) {
    Leaf leaf;
    if (kind == 'T') {
      leaf.tensor = in.tensor();
    } else if (kind == 'S') {
      const auto count = in.value<uint64_t>();
      leaf.text.assign(in.raw(count), count);
    } else {
      leaf.number = in.value<double>();
    }
    made.leaves.push_back(std::move(leaf));
  }
  if (!in.is_over()) RecordReader::damaged();
  return made;
}

uint64_t checksum_of(const char* bytes, size_t size) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  constexpr size_t kLanes = 4;  // so that multiplications overlap
  uint64_t lanes[kLanes] = {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89};
  uint64_t words[kLanes];
  for (size_t at = 0; at < size; at += sizeof words) {
    if (size - at < sizeof words) std::memset(words, 0, sizeof words);
    std::memcpy(words, bytes + at, std::min(size - at, sizeof words));
    for (size_t k = 0; k < kLanes; k++) {
      lanes[k] = (lanes[k] ^ words[k]) * kFactor;
      lanes[k] ^= lanes[k] >> 29;
    }
  }
  uint64_t sum = size;
  for (const uint64_t lane : lanes) {
    sum = (sum ^ lane) * kFactor;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace perigee
