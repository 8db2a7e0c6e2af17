// SPDX-License-Identifier: Apache-2.0
// Sources and transforms of a plugin, asked as a pipeline asks them and as none would.
#include "conform/parts.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "plugin/loader.hpp"

namespace perigee::conform {
namespace {

constexpr int64_t kElements = 64;  // of a source that are looked at

// ---- sources ----

class OpenSource {
 public:
  OpenSource(const pg_source_info& info, const Options& options) : info_(info) {
    call("open", info.open, info.user, options.data(), &self_, &count_);
  }
  OpenSource(const OpenSource&) = delete;
  ~OpenSource() { info_.close(info_.user, self_); }
  int64_t count() const { return count_; }
  // false: there is none.
  bool read(int64_t position, MadeElement& into) const {
    const pg_field_sink sink = into.sink();
    uint32_t end = 0;
    pg_error error = pg::make_error();
    const int32_t code = info_.read(info_.user, self_, position, &sink, &end, &error);
    need(into.problem.empty(), into.problem);
    if (code != PG_OK) {
      need(error.message[0] != '\0', "read fails without a message");
      wrong(pg::format("read of element %lld fails: ", static_cast<long long>(position)) + pg::message_of(code, error));
    }
    need(end <= 1, pg::format("`end` is %u", end));
    need(end == 0 || into.empty(), "fields are given where there is no element");
    need(end == 1 || !into.empty(), pg::format("element %lld has no field", static_cast<long long>(position)));
    return end == 0;
  }
  void gather(const std::vector<int64_t>& positions, MadeElement& into) const {
    const pg_field_sink sink = into.sink();
    call("gather", info_.gather, info_.user, self_, positions.size(), positions.data(), &sink);
    need(into.problem.empty(), into.problem);
  }
  bool skip(int64_t position) const {
    uint32_t end = 0;
    call("skip", info_.skip, info_.user, self_, position, &end);
    return end == 0;
  }

 private:
  const pg_source_info& info_;
  void* self_ = nullptr;
  int64_t count_ = 0;
};

void need_same(const MadeElement& a, const MadeElement& b, int64_t position) {
  const std::string difference = a.difference(b);
  need(difference.empty(),
       pg::format("element %lld is not the same each time: ", static_cast<long long>(position)) + difference);
}

using Elements = std::deque<MadeElement>;

// All elements of a source in order, at most so many, and whether that is all.
bool read_in_order(const OpenSource& source, const Options& options, Poison poison, Elements& into) {
  for (int64_t i = 0; i < kElements; i++) {
    if (i == source.count()) return true;
    if (!source.read(i, into.emplace_back(poison, options))) {
      into.pop_back();
      need(source.count() == PG_COUNT_UNKNOWN,
           pg::format("it says that it has %lld elements, and ends behind %lld", static_cast<long long>(source.count()),
                      static_cast<long long>(i)));
      return true;
    }
  }
  return source.count() == kElements;
}

void check_in_order(const pg_source_info& info, const Options& options, PartChecks& checks) {
  Elements first;
  if (!checks.check("its elements are read one after the other", [&] {
        const OpenSource source(info, options);
        need(source.count() >= 0, pg::format("its count is %lld", static_cast<long long>(source.count())));
        read_in_order(source, options, Poison::first, first);
      }))
    return;
  checks.check("another pass has the same elements", [&] {
    const OpenSource source(info, options);
    Elements second;
    read_in_order(source, options, Poison::second, second);
    need(first.size() == second.size(),
         pg::format("it has %zu elements, and %zu another time", first.size(), second.size()));
    for (size_t i = 0; i < first.size(); i++) need_same(first[i], second[i], static_cast<int64_t>(i));
  });
  checks.check("passes at one time do not meet", [&] {
    on_threads([&](int) {
      const OpenSource source(info, options);
      Elements second;
      read_in_order(source, options, Poison::second, second);
      for (size_t i = 0; i < std::min(first.size(), second.size()); i++)
        need_same(first[i], second[i], static_cast<int64_t>(i));
    });
  });
  if (info.skip == nullptr) return;
  checks.check("what is skipped is what would have been read", [&] {
    for (size_t from : {size_t{1}, first.size() / 2, first.size()}) {
      if (from > first.size()) continue;
      const OpenSource source(info, options);
      for (size_t i = 0; i < from; i++)
        need(source.skip(static_cast<int64_t>(i)), pg::format("skip ends at element %zu, which read gives", i));
      if (from == first.size()) continue;
      MadeElement next(Poison::second, options);
      need(source.read(static_cast<int64_t>(from), next), pg::format("it ends behind %zu skipped elements", from));
      need_same(first[from], next, static_cast<int64_t>(from));
    }
  });
}

void check_by_position(const pg_source_info& info, const Options& options, PartChecks& checks) {
  std::unique_ptr<OpenSource> source;
  std::vector<int64_t> positions;
  Elements first;
  if (!checks.check("any of its elements is read", [&] {
        source = std::make_unique<OpenSource>(info, options);
        need(source->count() >= 0 && source->count() != PG_COUNT_UNKNOWN,
             pg::format("its count is %lld; one that is read by position knows it",
                        static_cast<long long>(source->count())));
        const int64_t many = std::min(source->count(), kElements);
        for (int64_t i = 0; i < many; i++) positions.push_back(source->count() / many * i);
        for (int64_t i : positions)
          need(source->read(i, first.emplace_back(Poison::first, options)),
               pg::format("it ends at element %lld of %lld", static_cast<long long>(i),
                          static_cast<long long>(source->count())));
      }))
    return;
  checks.check("in any order and again, they are the same", [&] {
    for (size_t k = positions.size(); k-- > 0;) {
      MadeElement again(Poison::second, options);
      source->read(positions[k], again);
      need_same(first[k], again, positions[k]);
    }
  });
  checks.check("threads at one time read the same", [&] {
    on_threads([&](int thread) {
      for (size_t k = 0; k < positions.size(); k++) {
        const size_t at = (k * 7 + static_cast<size_t>(thread) * 3) % positions.size();
        MadeElement again(Poison::second, options);
        source->read(positions[at], again);
        need_same(first[at], again, positions[at]);
      }
    });
  });
  checks.check("opened again, it has the same elements", [&] {
    const OpenSource other(info, options);
    need(other.count() == source->count(), "its count is another");
    for (size_t k = 0; k < positions.size(); k++) {
      MadeElement again(Poison::second, options);
      other.read(positions[k], again);
      need_same(first[k], again, positions[k]);
    }
  });
  if (info.gather == nullptr) return;
  checks.check("many gathered are those that are read, in any order and again", [&] {
    for (const bool backwards : {false, true}) {
      std::vector<int64_t> wanted = positions;
      if (backwards) std::reverse(wanted.begin(), wanted.end());
      if (backwards && !wanted.empty()) wanted.push_back(wanted[0]);
      Elements one_by_one;
      for (int64_t i : wanted) source->read(i, one_by_one.emplace_back(Poison::first, options));
      MadeElement batch(Poison::second, options);
      source->gather(wanted, batch);
      const std::string difference = batch.difference(one_by_one);
      need(difference.empty(), difference);
    }
  });
}

bool is_given(const std::string& part, const std::string& option, const std::vector<PartOption>& given) {
  return std::any_of(given.begin(), given.end(), [&](const PartOption& each) {
    return each.part == part && (option.empty() || each.name == option);
  });
}

bool takes_tensors(const pg_attr_info& attr) { return attr.kind == PG_ATTR_TENSOR || attr.kind == PG_ATTR_TENSORS; }

// Tensors that must be given: numbers that tell each place from its neighbours.
template <class Info>
void give_tensors(const Info& info, Options& options) {
  for (uint32_t i = 0; i < info.attr_count; i++) {
    const pg_attr_info& attr = *info.attrs[i];
    if ((attr.flags & PG_ATTR_REQUIRED) == 0 || !takes_tensors(attr)) continue;
    const int64_t rows[2] = {6, 4}, one[1] = {6};
    std::vector<float> wide(24);
    std::iota(wide.begin(), wide.end(), 1.0F);
    const std::vector<int64_t> ids = {3, 1, 4, 1, 5, 9};
    options.set_tensor(attr.name, "x", *from_host(PG_F32, 2, rows, wide.data(), default_device()));
    if (attr.kind == PG_ATTR_TENSORS)
      options.set_tensor(attr.name, "y", *from_host(PG_I64, 1, one, ids.data(), default_device()));
  }
}

// The options of a source or transform: its defaults, and what was given for it. NULL, and it is said: some are
// missing.
template <class Info>
std::unique_ptr<Options> options_of(const Info& info, const std::vector<PartOption>& given, PartChecks& checks) {
  const std::string part = info.name;
  std::string missing;
  for (uint32_t i = 0; i < info.attr_count; i++) {
    if ((info.attrs[i]->flags & PG_ATTR_REQUIRED) == 0 || is_given(part, info.attrs[i]->name, given)) continue;
    if (takes_tensors(*info.attrs[i])) continue;
    missing += (missing.empty() ? "" : ", ") + part + "." + info.attrs[i]->name;
  }
  if (!missing.empty()) {
    checks.not_asked("it needs options: give them by --with " + missing + "=...");
    return nullptr;
  }
  auto options = std::make_unique<Options>(info.attrs, info.attr_count, info.attr_size, info.defaults);
  for (const PartOption& option : given)
    if (option.part == part && !options->set(option.name, option.value))
      pg::fail_argument(part + " has no option " + option.name);
  give_tensors(info, *options);
  return options;
}

void check_source(const pg_source_info& info, const std::vector<PartOption>& given, std::vector<Finding>& found) {
  PartChecks checks(found, "sources", info.name);
  const std::unique_ptr<Options> options = options_of(info, given, checks);
  if (options == nullptr) return;
  if (!is_given(info.name, "", given)) {  // its defaults may be of no use
    void* self = nullptr;
    int64_t count = 0;
    pg_error error = pg::make_error();
    const int32_t code = info.open(info.user, options->data(), &self, &count, &error);
    if (code == PG_OK) info.close(info.user, self);
    if (code == PG_E_INVALID_ARGUMENT || code == PG_E_NOT_FOUND)
      return checks.not_asked("it opens with no defaults: " + pg::message_of(code, error));
  }
  if ((info.flags & PG_SOURCE_IN_ORDER) != 0)
    check_in_order(info, *options, checks);
  else
    check_by_position(info, *options, checks);
}

// ---- transforms ----

// What transforms are asked with: a picture, a row of numbers, a number, a text, under names that are common.
struct Asked {
  Asked(uint32_t dtype, std::vector<int64_t> shape) : shape(std::move(shape)) {
    int64_t count = 1;
    for (int64_t size : this->shape) count *= size;
    values.resize(static_cast<size_t>(count) * (dtype & 0xffff) / 64 + 1);
    for (int64_t i = 0; i < count; i++) {
      if (dtype == PG_U8)
        reinterpret_cast<uint8_t*>(values.data())[i] = static_cast<uint8_t>(i * 37 % 251);
      else
        reinterpret_cast<float*>(values.data())[i] = static_cast<float>(i % 7) - 2.5f;
    }
    const uint32_t size = PG_SIZE(pg_field, data);
    const uint64_t bytes = static_cast<uint64_t>(count) * (dtype & 0xffff) / 8;
    for (const char* name : {"x", "image"})
      fields.push_back({size, PG_FIELD_TENSOR, name, dtype, static_cast<uint32_t>(this->shape.size()),
                        this->shape.data(), 0, bytes, values.data()});
    for (const char* name : {"y", "n", "label"})
      fields.push_back({size, PG_FIELD_NUMBER, name, 0, 0, nullptr, 2, 0, nullptr});
    for (const char* name : {"text", "s"}) fields.push_back({size, PG_FIELD_BYTES, name, 0, 0, nullptr, 0, 4, "four"});
    for (const pg_field& field : fields) list.push_back(&field);
  }
  Asked(const Asked&) = delete;
  pg_transform_call call(uint64_t random) const {
    return {PG_SIZE(pg_transform_call, random), static_cast<uint32_t>(list.size()), list.data(), 3, 5, 1, random};
  }
  std::vector<int64_t> shape;
  std::vector<uint64_t> values;
  std::vector<pg_field> fields;
  std::vector<const pg_field*> list;
};

void apply(const pg_transform_info& info, void* self, const Asked& asked, uint64_t random, MadeElement& into) {
  const pg_transform_call what = asked.call(random);
  // The fields that are there, so that it may drop them.
  pg_field_sink sink = into.sink();
  pg_error error = pg::make_error();
  for (const pg_field* field : asked.list) {
    void* to = sink.field(sink.context, field, &error);
    if (to != nullptr) std::memcpy(to, field->data, field->bytes);
  }
  const int32_t code = info.apply(info.user, self, &what, &sink, &error);
  need(into.problem.empty(), into.problem);
  if (code == PG_OK) return;
  need(error.message[0] != '\0', "an element is refused without a message");
  throw pg::Error(code, pg::message_of(code, error));
}

void check_transform(const pg_transform_info& info, const std::vector<PartOption>& given, std::vector<Finding>& found) {
  PartChecks checks(found, "transforms", info.name);
  const std::unique_ptr<Options> options = options_of(info, given, checks);
  if (options == nullptr) return;
  void* self = nullptr;
  if (!checks.check("it opens",
                    [&] { call("open", info.open, info.user, static_cast<const void*>(options->data()), &self); }))
    return;
  const Asked picture(PG_U8, {6, 5, 3}), row(PG_F32, {8});
  std::string why;
  bool some = false;
  for (const Asked* asked : {&picture, &row}) {
    const std::vector<uint64_t> before = asked->values;
    MadeElement first(Poison::first, *options);
    try {
      apply(info, self, *asked, 11, first);
    } catch (const pg::Error& e) {  // it is for other elements
      checks.check("what it refuses has a reason", [&] {
        need(e.code == PG_E_INVALID_ARGUMENT || e.code == PG_E_NOT_SUPPORTED || e.code == PG_E_NOT_FOUND ||
                 e.code == PG_E_DATA_LOSS,
             pg::format("an element is refused with code %d: %s", e.code, e.what()));
      });
      why = e.what();
      continue;
    }
    some = true;
    const char* of = asked == &picture ? "picture" : "row";
    checks.check((std::string("of one ") + of + " and one draw it makes one element").c_str(), [&] {
      MadeElement again(Poison::second, *options);
      apply(info, self, *asked, 11, again);
      need_same(first, again, 3);
    });
    checks.check((std::string("threads at one time make the same of a ") + of).c_str(), [&] {
      on_threads([&](int thread) {
        for (uint64_t k = 0; k < 16; k++) {
          MadeElement other(Poison::second, *options), again(Poison::second, *options);
          apply(info, self, *asked, static_cast<uint64_t>(thread) * 16 + k, other);
          apply(info, self, *asked, 11, again);
          need_same(first, again, 3);
        }
      });
    });
    checks.check((std::string("it leaves the ") + of + " that it is given").c_str(),
                 [&] { need(asked->values == before, "it has written into what it was given"); });
  }
  info.close(info.user, self);
  if (!some) checks.not_asked("it takes none of the elements that it is asked with: " + why);
}

}  // namespace
}  // namespace perigee::conform

namespace perigee {

std::vector<Finding> conform_parts(const std::string& path, const std::vector<PartOption>& given) {
  std::vector<Finding> found;
  const LoadedPlugin& plugin = *load_plugin(path);
  if (plugin.data == nullptr) return found;
  const pg_data& data = *plugin.data;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < data.source_count; i++) names.push_back(data.sources[i]->name);
  for (uint32_t i = 0; i < data.transform_count; i++) names.push_back(data.transforms[i]->name);
  for (const PartOption& option : given)
    if (std::find(names.begin(), names.end(), option.part) == names.end())
      pg::fail_argument("--with " + option.part + "." + option.name + ": " + plugin.name +
                        " has no source or transform of that name");
  for (uint32_t i = 0; i < data.source_count; i++) conform::check_source(*data.sources[i], given, found);
  for (uint32_t i = 0; i < data.transform_count; i++) conform::check_transform(*data.transforms[i], given, found);
  for (uint32_t i = 0; i < data.codec_count; i++) conform::check_codec(*data.codecs[i], found);
  return found;
}

}  // namespace perigee
