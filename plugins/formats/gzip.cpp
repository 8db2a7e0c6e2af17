// SPDX-License-Identifier: Apache-2.0
// gzip: bytes, whatever they are, as one uint8 tensor "data". Read are gzip's members one after the other (RFC 1952)
// and zlib's streams (RFC 1950), told by how they begin; written is gzip.
#include <zlib.h>

#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "contents.hpp"

namespace {

using formats::File;
using pg::format;

constexpr size_t kPiece = 1 << 16, kBlock = 1 << 22;

// A stream that is unpacked into blocks, as nothing says beforehand how long it is.
class Unpacker {
 public:
  Unpacker(const File& file, int64_t max_bytes) : file_(file), max_bytes_(static_cast<uint64_t>(max_bytes)) {
    if (::inflateInit2(&stream_, MAX_WBITS + 32) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacker() { ::inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  void all() {
    bool between = true;                                      // streams
    while (fill() || (!between && stream_.avail_out == 0)) {  // what is unpacked may wait for room
      if (between && size_ > 0 && only_zeros()) return;       // what tapes are filled up with
      if (stream_.avail_out == 0) add_block();
      const uInt room = stream_.avail_out;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      size_ += room - stream_.avail_out;
      if (size_ > max_bytes_)
        pg::fail_data(file_.path(),
                      format("it unpacks to more than max_bytes, %llu", static_cast<unsigned long long>(max_bytes_)));
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) damaged();
      between = code == Z_STREAM_END;
      if (between) ::inflateReset(&stream_);
    }
    if (!between) {
      pg::fail_data(file_.path(), format("the file ends at byte %llu, inside its compressed data",
                                         static_cast<unsigned long long>(file_.size())));
    }
  }
  uint64_t size() const { return size_; }
  // Gives blocks away as they are copied.
  void copy_to(char* target) {
    uint64_t left = size_;
    for (auto& block : blocks_) {
      const auto some = static_cast<size_t>(std::min<uint64_t>(left, kBlock));
      target = std::copy_n(block.get(), some, target);
      left -= some;
      block.reset();
    }
  }

 private:
  // Whether there is more of the file.
  bool fill() {
    if (stream_.avail_in > 0) return true;
    const uint64_t some = std::min<uint64_t>(kPiece, file_.size() - at_);
    if (some == 0) return false;
    file_.read(at_, piece_.data(), some);
    at_ += some;
    stream_.next_in = piece_.data(), stream_.avail_in = static_cast<uInt>(some);
    return true;
  }
  void add_block() {
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    stream_.next_out = reinterpret_cast<Bytef*>(blocks_.back().get());
    stream_.avail_out = kBlock;
  }
  bool only_zeros() {
    do {
      for (uInt i = 0; i < stream_.avail_in; i++) {
        if (stream_.next_in[i] != 0) return false;
      }
      stream_.avail_in = 0;
    } while (fill());
    return true;
  }
  [[noreturn]] void damaged() const {
    const uint64_t at = at_ - stream_.avail_in;
    pg::fail_data(file_.path(),
                  format("damaged compressed data before byte %llu: %s", static_cast<unsigned long long>(at),
                         stream_.msg != nullptr ? stream_.msg : "it needs a dictionary"));
  }

  const File& file_;
  const uint64_t max_bytes_;
  z_stream stream_{};
  std::array<Bytef, kPiece> piece_{};
  std::vector<std::unique_ptr<char[]>> blocks_;
  uint64_t at_ = 0, size_ = 0;
};

}  // namespace

namespace formats {

Unpacked unpack(const File& file, int64_t max_bytes) {
  if (file.size() < 2) pg::fail_data(file.path(), "too short for compressed data");
  Unpacker unpacker(file, max_bytes);
  unpacker.all();
  Unpacked made{std::make_unique_for_overwrite<char[]>(unpacker.size()), unpacker.size()};
  if (made.size > 0) unpacker.copy_to(made.bytes.get());
  return made;
}

bool is_gzip(const File& file) {
  unsigned char head[2] = {};
  if (file.size() >= 2) file.read(0, head, 2);
  return head[0] == 0x1f && head[1] == 0x8b;
}

FileContents::FileContents(File file, bool packed) : file_(std::move(file)), packed_(packed) {
  if (packed) unpacked_ = unpack(file_);
}

void FileContents::read(uint64_t offset, void* target, uint64_t bytes) const {
  if (!packed_) return file_.read(offset, target, bytes);
  if (offset > unpacked_.size || bytes > unpacked_.size - offset)
    pg::fail_data(path(), format("it ends at byte %llu, unpacked", static_cast<unsigned long long>(unpacked_.size)));
  if (bytes != 0) std::memcpy(target, unpacked_.bytes.get() + offset, bytes);
}

FileContentsRef ManyFiles::get(size_t i) {
  const std::lock_guard lock(mutex_);
  if (kept_[i]) return kept_[i];
  File file = File::open_to_read(paths_[i]);
  const bool packed = is_gzip(file);
  if (!packed && open_.size() == kMostOpen) {
    for (size_t k : open_) kept_[k].reset();
    open_.clear();
  }
  kept_[i] = std::make_shared<FileContents>(std::move(file), packed);
  if (!packed) open_.push_back(i);
  return kept_[i];
}

}  // namespace formats

namespace {

struct Gzip {
  static constexpr const char *name = "gzip", *doc = "Compressed bytes of any kind, as one uint8 tensor \"data\"",
                              *extensions = ".gz", *options = "max_bytes=17179869184";

  static void read(const std::string& path, const pg::Options& options, pg::Sink& sink) {
    const int64_t max = options.integer("max_bytes");
    if (max < 1)
      pg::fail_argument(format("option max_bytes: expected 1 or more, got %lld", static_cast<long long>(max)));
    const File file = File::open_to_read(path);
    if (file.size() < 2) pg::fail_data(path, "too short for compressed data");
    Unpacker unpacker(file, max);
    unpacker.all();
    void* target = sink.tensor("data", PG_U8, {static_cast<int64_t>(unpacker.size())});
    if (unpacker.size() > 0) unpacker.copy_to(static_cast<char*>(target));
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes) {
    if (items.size() != 1 || items[0].dtype != PG_U8 || !notes.empty())
      pg::fail_argument("a gzip file is one uint8 tensor, and has no notes");

    File file = File::open_to_write(path);
    z_stream stream{};
    if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
    const std::unique_ptr<z_stream, int (*)(z_stream*)> ended(&stream, ::deflateEnd);
    std::vector<Bytef> piece(kPiece);
    auto* at = static_cast<Bytef*>(const_cast<void*>(items[0].data));  // zlib does not say const
    uint64_t left = items[0].bytes;
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      const auto some = static_cast<uInt>(std::min<uint64_t>(left, 1u << 30));
      if (stream.avail_in == 0) stream.next_in = at, stream.avail_in = some, at += some, left -= some;
      stream.next_out = piece.data(), stream.avail_out = kPiece;
      code = ::deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
      file.write(piece.data(), kPiece - stream.avail_out);
    }
    file.finish();
  }
};

PG_FORMAT(Gzip);

}  // namespace
