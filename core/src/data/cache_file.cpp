// SPDX-License-Identifier: Apache-2.0
// A cache in a file: a head (what it is, whose elements), records as they were put, where they are, and an end that
// says where that is. It is written beside its place until it has all elements.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/new_file.hpp"
#include "data/cache.hpp"
#include "data/cache_record.hpp"

namespace perigee {

namespace {

constexpr char kCacheMagic[8] = {'P', 'G', 'C', 'A', 'C', 'H', 'E', '1'};
constexpr uint64_t kByteOrder = 0x0102030405060708;

struct CacheHead {
  char magic[8];
  uint64_t order, identity_bytes, identity_checksum;
};
struct CachePlace {
  uint64_t offset, bytes, checksum;
};
struct CacheEnd {
  uint64_t places_offset, count, places_checksum;
  char magic[8];
};

// The line in which two texts differ first, and what stands there.
std::string difference(const std::string& theirs, const std::string& ours) {
  size_t a = 0, b = 0;
  for (int line = 1;; line++) {
    const size_t a_end = std::min(theirs.find('\n', a), theirs.size()),
                 b_end = std::min(ours.find('\n', b), ours.size());
    const std::string their = theirs.substr(a, a_end - a), our = ours.substr(b, b_end - b);
    if (their != our) {
      const auto shown = [](const std::string& text) { return text.empty() ? std::string("nothing") : text; };
      return pg::format("its stage %d is %s, here it is %s", line, shown(their).c_str(), shown(our).c_str());
    }
    a = std::min(a_end + 1, theirs.size()), b = std::min(b_end + 1, ours.size());
  }
}

class FileCache : public Cache {
 public:
  FileCache(std::string path, std::string identity) : path_(std::move(path)), identity_(std::move(identity)) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ >= 0) {
      try {
        open_whole();
      } catch (...) {
        ::close(descriptor_);
        throw;
      }
    } else if (errno != ENOENT) {
      fail_system(path_, "cannot open");
    }
  }
  ~FileCache() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool get(int64_t i, Element& out) override {
    CachePlace place;
    int from;
    LayoutRef layout;
    {
      std::lock_guard lock(mutex_);
      const auto found = places_.find(i);
      if (found == places_.end()) return false;
      place = found->second;
      from = descriptor_ >= 0 ? descriptor_ : file_->descriptor();
      layout = last_;
    }
    const std::unique_ptr<char[]> bytes(new char[place.bytes]);
    read(from, bytes.get(), place.bytes, place.offset);
    try {
      if (checksum_of(bytes.get(), place.bytes) != place.checksum)
        pg::fail(PG_E_DATA_LOSS, "its content is not what was written");
      out = from_bytes(bytes.get(), place.bytes, layout);
    } catch (const pg::Error& e) {
      if (e.code == PG_E_OUT_OF_MEMORY) throw;
      pg::fail(PG_E_DATA_LOSS,
               pg::format("%s: element %lld at byte %llu: %s (delete the file)", path_.c_str(),
                          static_cast<long long>(i + 1), static_cast<unsigned long long>(place.offset), e.what()));
    }
    std::lock_guard lock(mutex_);
    last_ = std::move(layout);
    return true;
  }

  bool put(int64_t i, const Element& element) override {
    const std::string bytes = to_bytes(element);
    const uint64_t checksum = checksum_of(bytes.data(), bytes.size());
    std::lock_guard lock(mutex_);
    if (places_.count(i) > 0) return false;
    if (is_broken_) pg::fail(PG_E_FAILED_PRECONDITION, path_ + ": could not be written before");
    const NoSizeSignal no_signal;
    is_broken_ = true;
    if (!file_) begin();
    write(bytes.data(), bytes.size());
    places_[i] = {size_ - bytes.size(), bytes.size(), checksum};
    is_broken_ = false;
    return true;
  }

  void finish(int64_t count) override {
    std::lock_guard lock(mutex_);
    const NoSizeSignal no_signal;
    if (!file_) begin();
    std::vector<CachePlace> list;
    for (const auto& [i, place] : places_) list.push_back(place);
    const auto* places = reinterpret_cast<const char*>(list.data());
    const size_t bytes = list.size() * sizeof(CachePlace);
    CacheEnd end{size_, list.size(), checksum_of(places, bytes), {}};
    std::memcpy(end.magic, kCacheMagic, sizeof kCacheMagic);
    write(places, bytes);
    write(&end, sizeof end);
    file_->commit(path_);
    count_ = count;
  }

 private:
  void begin() {
    const std::filesystem::path target(path_);
    remove_unfinished(target.parent_path().empty() ? "." : target.parent_path().string(), target.filename().string());
    file_.emplace(target, NewFile::Threads::many);
    CacheHead head{{}, kByteOrder, identity_.size(), checksum_of(identity_.data(), identity_.size())};
    std::memcpy(head.magic, kCacheMagic, sizeof kCacheMagic);
    write(&head, sizeof head);
    write(identity_.data(), identity_.size());
  }

  void write(const void* bytes, size_t size) {
    file_->write(bytes, size);
    size_ += size;
  }

  void read(int from, void* to, size_t size, uint64_t at) const {
    for (size_t done = 0; done < size;) {
      const ssize_t got = ::pread(from, static_cast<char*>(to) + done, size - done, static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_system(path_, "cannot read");
      if (got == 0) damaged("it is shorter than it says");
      done += static_cast<size_t>(got);
    }
  }

  [[noreturn]] void damaged(const char* what) const {
    pg::fail(PG_E_DATA_LOSS, path_ + ": " + what + " (delete the file)");
  }

  void open_whole() {
    const off_t found = ::lseek(descriptor_, 0, SEEK_END);
    if (found < 0) fail_system(path_, "cannot read");
    const auto size = static_cast<uint64_t>(found);
    CacheHead head;
    if (size < sizeof head + sizeof(CacheEnd)) damaged("it is no cache of a pipeline, or cut off");
    read(descriptor_, &head, sizeof head, 0);
    if (std::memcmp(head.magic, kCacheMagic, sizeof kCacheMagic) != 0) damaged("it is no cache of a pipeline");
    if (head.order != kByteOrder) damaged("it is of a machine with another byte order");
    if (head.identity_bytes > size - sizeof head - sizeof(CacheEnd)) damaged("its head is damaged");
    std::string identity(head.identity_bytes, '\0');
    read(descriptor_, identity.data(), identity.size(), sizeof head);
    if (checksum_of(identity.data(), identity.size()) != head.identity_checksum) damaged("its head is damaged");
    if (identity != identity_)
      pg::fail(PG_E_FAILED_PRECONDITION, path_ +
                                             ": holds another pipeline's elements: " + difference(identity, identity_) +
                                             " (delete the file, or give another name)");
    CacheEnd end;
    read(descriptor_, &end, sizeof end, size - sizeof end);
    const uint64_t room = size - sizeof end;
    if (std::memcmp(end.magic, kCacheMagic, sizeof kCacheMagic) != 0 || end.places_offset > room ||
        end.count != (room - end.places_offset) / sizeof(CachePlace) ||
        (room - end.places_offset) % sizeof(CachePlace) != 0)
      damaged("its end is damaged, or cut off");
    std::vector<CachePlace> list(end.count);
    const size_t bytes = list.size() * sizeof(CachePlace);
    read(descriptor_, list.data(), bytes, end.places_offset);
    if (checksum_of(reinterpret_cast<const char*>(list.data()), bytes) != end.places_checksum)
      damaged("its list of elements is damaged");
    for (size_t i = 0; i < list.size(); i++) {
      if (list[i].offset > end.places_offset || list[i].bytes > end.places_offset - list[i].offset)
        damaged("its list of elements is damaged");
      places_[static_cast<int64_t>(i)] = list[i];
    }
    count_ = static_cast<int64_t>(list.size());
  }

  const std::string path_, identity_;
  int descriptor_ = -1;  // of a whole file
  std::mutex mutex_;
  std::optional<NewFile> file_;  // that is being written, or was by this process
  bool is_broken_ = false;       // a write failed
  uint64_t size_ = 0;
  std::map<int64_t, CachePlace> places_;
  LayoutRef last_;  // of the elements that were read
};

}  // namespace

CacheRef file_cache(const std::string& path, const std::string& identity) {
  return std::make_shared<FileCache>(path, identity);
}

}  // namespace perigee
