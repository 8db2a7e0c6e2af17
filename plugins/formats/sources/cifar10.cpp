// SPDX-License-Identifier: Apache-2.0
// cifar10: a source by position. Small photographs from files of records (Krizhevsky, 2009), or from an archive that
// has them, which stay in memory: a label, then red, green and blue, row by row.
#include <algorithm>

#include "contents.hpp"
#include "labels.hpp"
#include "perigee/data.hpp"
#include "tar.hpp"

namespace {

constexpr int64_t kSide = 32;
constexpr size_t kPlane = kSide * kSide, kPicture = 3 * kPlane, kRecord = 1 + kPicture;

struct Cifar {
  const pg_texts* batches = nullptr;
  const char* archive = "";

  void check() const {
    if (batches->count == 0) pg::fail_argument("batches has none; at least one is needed");
  }

  class Open {
   public:
    explicit Open(const Cifar& options) {
      const std::vector<std::string> names = pg::texts_of(options.batches);
      const std::string archive = options.archive;
      std::vector<std::vector<unsigned char>> batches;
      if (archive.empty()) {
        for (const std::string& path : names) {
          const formats::File file = formats::File::open_to_read(path);
          file.read(0, batches.emplace_back(file.size()).data(), file.size());
        }
      } else {
        batches = members(archive, names);
      }
      for (size_t k = 0; k < names.size(); k++) {
        add(names[k], batches[k]);
        batches[k] = {};
      }
    }
    int64_t count() const { return static_cast<int64_t>(records_.size() / kRecord); }
    void read(int64_t i, pg::FieldSink& out) const {
      put_picture(i, out.tensor<unsigned char>("x", PG_U8, {kSide, kSide, 3}));
      *out.tensor<int64_t>("y", PG_I64, {}) = *record(i);
    }
    void gather(const int64_t* positions, uint64_t count, pg::FieldSink& out) const {
      const auto n = static_cast<int64_t>(count);
      auto* x = out.tensor<unsigned char>("x", PG_U8, {n, kSide, kSide, 3});
      for (uint64_t k = 0; k < count; k++) put_picture(positions[k], x + k * kPicture);
      auto* y = out.tensor<int64_t>("y", PG_I64, {n});
      for (uint64_t k = 0; k < count; k++) y[k] = *record(positions[k]);
    }

   private:
    // What the archive's files hold, by their names without folders.
    static std::vector<std::vector<unsigned char>> members(const std::string& path,
                                                           const std::vector<std::string>& names) {
      formats::File opened = formats::File::open_to_read(path);
      const bool packed = formats::is_gzip(opened);
      const formats::FileContents file(std::move(opened), packed);
      std::vector<std::vector<unsigned char>> found(names.size());
      std::vector<bool> there(names.size());
      const formats::TarBytes bytes{
          file.size(), [&](uint64_t offset, void* target, uint64_t count) { file.read(offset, target, count); }};
      const auto damage = formats::each_member(bytes, [&](const formats::TarMember& member) {
        const std::string name = member.name.substr(member.name.rfind('/') + 1);
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) return;
        const auto k = static_cast<size_t>(at - names.begin());
        there[k] = true;
        found[k].resize(member.size);
        file.read(member.data, found[k].data(), member.size);
      });
      if (damage)
        pg::fail_data(path, pg::format("the archive at byte %llu: %s", static_cast<unsigned long long>(damage->at),
                                       damage->problem.c_str()));
      for (size_t k = 0; k < names.size(); k++)
        if (!there[k]) pg::fail(PG_E_NOT_FOUND, "there is no " + names[k] + " in " + path);
      return found;
    }
    void add(const std::string& path, const std::vector<unsigned char>& batch) {
      if (batch.empty() || batch.size() % kRecord != 0)
        pg::fail_data(path, pg::format("%zu bytes are no records of %zu", batch.size(), kRecord));
      for (size_t at = 0; at < batch.size(); at += kRecord) formats::check_class(path, batch[at]);
      records_.insert(records_.end(), batch.begin(), batch.end());
    }
    const unsigned char* record(int64_t i) const { return records_.data() + static_cast<size_t>(i) * kRecord; }
    // Channels go last.
    void put_picture(int64_t i, unsigned char* target) const {
      const unsigned char* from = record(i) + 1;
      for (size_t at = 0; at < kPlane; at++, target += 3)
        target[0] = from[at], target[1] = from[at + kPlane], target[2] = from[at + 2 * kPlane];
    }

    std::vector<unsigned char> records_;
  };
};

PG_SOURCE(Cifar, "cifar10", "Small photographs of ten classes: samples { x = uint8 [32, 32, 3], y = int64 }")
    .attr(&Cifar::batches, "batches", "files of the binary version, or their names in an archive", PG_ATTR_REQUIRED)
    .attr(&Cifar::archive, "archive", "a tar archive that has them, plain or gzip");

}  // namespace
