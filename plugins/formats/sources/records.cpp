// SPDX-License-Identifier: Apache-2.0
// records: files of records as sources. `record_index` says where the records of each file are, `records` reads them by
// position, and `packed_records` one after the other of files of which some are compressed: one in memory at a time.
#include <algorithm>

#include "../records/kind.hpp"

namespace {

using formats::FileContents, formats::FileContentsRef, formats::File, formats::Place, formats::RecordField,
    formats::RecordIndex, formats::RecordKind;
using pg::format;

constexpr const char* kFormats[] = {"tfrecord", "tar"};
constexpr const char* kProblem = "__problem__";

// What all three take.
struct RecordFiles {
  const pg_texts* paths = nullptr;
  int32_t kind = 0;
};

// What a spec says, a list a column: entry i is of field i.
struct Spec : RecordFiles {
  const pg_texts* fields = nullptr;
  const pg_texts* types = nullptr;
  const pg_texts* shapes = nullptr;
  const pg_texts* from = nullptr;
  const pg_texts* codec_options = nullptr;
  const pg_texts* optional = nullptr;
  const pg_tensors* defaults = nullptr;
  const pg_tensors* default_ends = nullptr;
  pg::Bool raw = false;
  pg::Bool tell = false;
  pg::Bool placed = false;

  void check() const {
    for (const pg_texts* list : {types, shapes, from, codec_options})
      if (list != nullptr && list->count != 0 && list->count != fields->count)
        pg::fail_argument("types, shapes, from and codec_options must have one for each of fields, or none");
    if (types->count != fields->count) pg::fail_argument("types must have one for each of fields");
  }
};

const pg_field* find(const pg_tensors* tensors, const std::string& name, uint32_t dtype) {
  for (uint32_t i = 0; i < tensors->count; i++) {
    const pg_field& t = *tensors->list[i];
    if (name != t.name) continue;
    if (t.dtype != dtype) pg::fail_argument("the default of field \"" + name + "\" is of another dtype");
    return &t;
  }
  return nullptr;
}

// Texts one behind the other, at least one of them.
void check_ends(const RecordField& field) {
  const pg_field &texts = *field.preset, &ends = *field.preset_ends;
  bool sound = texts.rank == 1 && ends.rank == 1 && (ends.shape[0] > 0 || field.shape == "any");
  int64_t before = 0;
  for (int64_t k = 0; sound && k < ends.shape[0]; k++) {
    const int64_t end = static_cast<const int64_t*>(ends.data)[k];
    sound = end >= before && end <= texts.shape[0];
    before = end;
  }
  if (!sound) pg::fail_argument("default_ends of field \"" + field.name + "\" are none of its texts");
}

std::vector<RecordField> fields_of(const Spec& spec) {
  std::vector<RecordField> made;
  for (uint32_t i = 0; i < spec.fields->count; i++) {
    RecordField field;
    field.name = spec.fields->list[i], field.type = spec.types->list[i];
    if (spec.shapes->count != 0) field.shape = spec.shapes->list[i];
    field.from = spec.from->count != 0 ? spec.from->list[i] : field.name;
    if (spec.codec_options->count != 0) field.options = spec.codec_options->list[i];
    for (uint32_t k = 0; k < spec.optional->count; k++) field.optional |= field.name == spec.optional->list[k];
    const bool texts = field.type == "bytes";
    field.preset = find(spec.defaults, field.name, texts ? PG_U8 : field.type == "int64" ? PG_I64 : PG_F32);
    if (texts && field.preset != nullptr) {
      field.preset_ends = find(spec.default_ends, field.name, PG_I64);
      if (field.preset_ends == nullptr) pg::fail_argument("default_ends has none for field \"" + field.name + "\"");
      check_ends(field);
    }
    made.push_back(std::move(field));
  }
  return made;
}

std::unique_ptr<RecordKind> kind_of(int32_t kind, std::vector<RecordField> fields, bool raw) {
  return kind == 0 ? formats::framed_records(std::move(fields), raw) : formats::sharded_records(std::move(fields), raw);
}

struct Index : RecordFiles {
  pg::Bool tell = false;

  class Open {
   public:
    explicit Open(const Index& options)
        : files_(pg::texts_of(options.paths)), kind_(kind_of(options.kind, {}, true)), tell_(options.tell) {}
    int64_t count() const { return static_cast<int64_t>(files_.size()); }
    void read(int64_t i, pg::FieldSink& out) const {
      File file = File::open_to_read(files_[static_cast<size_t>(i)]);
      const bool packed = kind_->is_packed(file);
      out.boolean("packed", packed);
      if (packed) return;
      const FileContents contents(std::move(file), false);
      const RecordIndex made = kind_->index(contents);
      if (!made.damage.empty() && !tell_) pg::fail_data(contents.path(), made.damage);
      if (!made.damage.empty()) out.text(kProblem, contents.path() + ": " + made.damage);
      auto* to = out.tensor<int64_t>("places", PG_I64, {static_cast<int64_t>(made.places.size()), 4});
      int64_t number = 0;
      for (const Place& place : made.places) {
        *to++ = i, *to++ = static_cast<int64_t>(place.begin), *to++ = static_cast<int64_t>(place.end);
        *to++ = ++number;
      }
    }

   private:
    const std::vector<std::string> files_;
    const std::unique_ptr<RecordKind> kind_;
    const bool tell_;
  };
};

// A record of what both other sources read. What is damaged is an error, or told as a field.
class Giver {
 public:
  explicit Giver(const Spec& spec)
      : kind_(kind_of(spec.kind, fields_of(spec), spec.raw)), tell_(spec.tell), placed_(spec.placed) {}
  const RecordKind& kind() const { return *kind_; }
  bool tells() const { return tell_; }

  void give(const FileContents& file, Place place, int64_t number, pg::FieldSink& out) const {
    thread_local std::string bytes;
    bytes.resize(place.end - place.begin);
    file.read(place.begin, bytes.data(), bytes.size());
    const auto shown = [&] { return file.path() + ": " + kind_->describe(bytes, place, number); };
    try {
      kind_->give(bytes, place, out);
      if (placed_) out.text("__place__", shown());
    } catch (const pg::Error& error) {
      if (error.code != PG_E_DATA_LOSS) throw;
      tell_or_fail(shown() + ": " + error.what(), out);
    }
    if (bytes.size() > kKept) bytes = {};
  }
  void tell_or_fail(const std::string& problem, pg::FieldSink& out) const {
    if (!tell_) throw pg::Error(PG_E_DATA_LOSS, problem);
    out.text(kProblem, problem);
  }

 private:
  static constexpr size_t kKept = 1 << 24;  // of memory, from one record for the next
  const std::unique_ptr<RecordKind> kind_;
  const bool tell_, placed_;
};

struct Records : Spec {
  const pg_field* places = nullptr;

  void check() const {
    Spec::check();
    if (places->dtype != PG_I64 || places->rank != 2 || places->shape[1] != 4)
      pg::fail_argument("places must be int64 [n, 4]");
    const auto* at = static_cast<const int64_t*>(places->data);
    for (int64_t i = 0; i < places->shape[0]; i++, at += 4)
      if (at[0] < 0 || at[0] >= paths->count || at[1] < 0 || at[2] < at[1])
        pg::fail_argument(format("places[%lld] is none", static_cast<long long>(i + 1)));
  }

  class Open {
   public:
    explicit Open(const Records& options)
        : files_(pg::texts_of(options.paths)),
          giver_(options),
          places_(static_cast<const int64_t*>(options.places->data)),
          count_(options.places->shape[0]) {}
    int64_t count() const { return count_; }
    void read(int64_t i, pg::FieldSink& out) {
      const int64_t* at = places_ + 4 * i;
      const FileContentsRef file = files_.get(static_cast<size_t>(at[0]));
      giver_.give(*file, {static_cast<uint64_t>(at[1]), static_cast<uint64_t>(at[2])}, at[3], out);
    }

   private:
    formats::ManyFiles files_;
    const Giver giver_;
    const int64_t* const places_;
    const int64_t count_;
  };
};

struct Packed : Spec {
  const pg_field* left_out = nullptr;

  void check() const {
    Spec::check();
    if (left_out != nullptr && (left_out->dtype != PG_I64 || left_out->rank != 1))
      pg::fail_argument("left_out must be int64 [n]");
  }

  class Open {
   public:
    static constexpr bool in_order = true;
    explicit Open(const Packed& options) : paths_(pg::texts_of(options.paths)), giver_(options) {
      if (options.left_out == nullptr) return;
      const auto* at = static_cast<const int64_t*>(options.left_out->data);
      left_out_.assign(at, at + options.left_out->shape[0]);
      std::sort(left_out_.begin(), left_out_.end());
      lenient_ = true;
    }
    static int64_t count() { return PG_COUNT_UNKNOWN; }

    bool read(int64_t, pg::FieldSink& out) {
      if (!next()) return false;
      if (!problem_.empty())
        giver_.tell_or_fail(std::exchange(problem_, {}), out);
      else
        giver_.give(*file_, index_.places[at_ - 1], static_cast<int64_t>(at_), out);
      return true;
    }
    bool skip(int64_t) {
      const bool there = next();
      if (there && !problem_.empty() && !giver_.tells()) throw pg::Error(PG_E_DATA_LOSS, problem_);
      problem_.clear();
      return there;
    }

   private:
    // Goes to the next that is not left out: a record, or what is damaged in place of one.
    bool next() {
      while (next_of_all()) {
        if (!std::binary_search(left_out_.begin(), left_out_.end(), number_++)) return true;
        problem_.clear();
      }
      return false;
    }
    bool next_of_all() {
      while (at_ == index_.places.size()) {
        if (next_path_ == paths_.size()) return false;
        open_next();
        if (!problem_.empty()) return true;
      }
      at_++;
      return true;
    }
    void open_next() {
      file_.reset();
      index_ = {};
      at_ = 0;
      const std::string& path = paths_[next_path_++];
      File file = File::open_to_read(path);
      const bool packed = giver_.kind().is_packed(file);
      try {
        file_ = std::make_shared<FileContents>(std::move(file), packed);
      } catch (const pg::Error& error) {
        if (error.code != PG_E_DATA_LOSS || (!giver_.tells() && !lenient_)) throw;
        problem_ = error.what();
        return;
      }
      index_ = giver_.kind().index(*file_);
      if (!index_.damage.empty()) problem_ = path + ": " + index_.damage;
    }

    const std::vector<std::string> paths_;
    const Giver giver_;
    std::vector<int64_t> left_out_;
    bool lenient_ = false;  // damage may be among what is left out
    size_t next_path_ = 0;
    FileContentsRef file_;
    RecordIndex index_;
    size_t at_ = 0;  // records of the file that were given
    std::string problem_;
    int64_t number_ = 0;  // of the next, of all files together
  };
};

// What options have of those that they are made of.
template <class Options, class Base, class Field>
Field Options::*own(Field Base::*field) {
  return field;
}

template <class Options, class Schema>
Schema& of_files(Schema& schema) {
  return schema.attr(own<Options>(&Options::paths), "paths", "the files", PG_ATTR_REQUIRED)
      .choice(own<Options>(&Options::kind), "kind", "what files they are", kFormats);
}

template <class Options, class Schema>
Schema& of_spec(Schema& schema) {
  return of_files<Options>(schema)
      .attr(own<Options>(&Options::fields), "fields", "names of the samples' fields", PG_ATTR_REQUIRED)
      .attr(own<Options>(&Options::types), "types",
            "of each: int64, float32 or bytes; in archives bytes, int64, npy or image", PG_ATTR_REQUIRED)
      .attr(own<Options>(&Options::shapes), "shapes", "of each, of Examples: such as \"28,28\", or any")
      .attr(own<Options>(&Options::from), "from",
            "of each, in archives: endings of files, the first that is there: \"jpg;png\"")
      .attr(own<Options>(&Options::codec_options), "codec_options", "of each, of pictures: lines \"key=value\"")
      .attr(own<Options>(&Options::optional), "optional", "fields that may be missing")
      .attr(own<Options>(&Options::defaults), "defaults",
            "what stands for missing fields of Examples: numbers, or bytes of texts")
      .attr(own<Options>(&Options::default_ends), "default_ends", "where each of the texts among them ends")
      .attr(own<Options>(&Options::raw), "raw", "bytes as they are, in place of fields")
      .attr(own<Options>(&Options::tell), "tell",
            "what is damaged is a sample with a field \"__problem__\", and no error")
      .attr(own<Options>(&Options::placed), "placed", "samples have the field \"__place__\": where they are from");
}

[[maybe_unused]] auto& index_source =
    of_files<Index>(pg::add_source<Index>("record_index",
                                          "Where records are: samples { packed, places = int64 [n, 4] }, one a file: "
                                          "the file, first byte, last byte, number of each record"))
        .attr(&Index::tell, "tell", "what is damaged is a field \"__problem__\"");

[[maybe_unused]] auto& records_source =
    of_spec<Records>(pg::add_source<Records>("records", "Records of TFRecord files and of WebDataset's shards"))
        .attr(&Records::places, "places", "as record_index has them", PG_ATTR_REQUIRED);

[[maybe_unused]] auto& packed_source =
    of_spec<Packed>(pg::add_source<Packed>("packed_records", "The same of files that may be compressed, in order"))
        .attr(&Packed::left_out, "left_out", "int64: which of all, from 0, are left out");

}  // namespace
