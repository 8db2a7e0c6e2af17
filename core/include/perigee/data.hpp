// SPDX-License-Identifier: Apache-2.0
// perigee/data.hpp: how sources, transforms and codecs of input pipelines are written (data.h says what they promise).
//
//   struct Lines {                                   // a source's options, with their defaults
//     const char* path = "";
//     class Open {                                   // what is opened with them; one for all threads
//      public:
//       explicit Open(const Lines& options);         // copies what it wants to keep of texts
//       int64_t count() const;                       // elements, or PG_COUNT_UNKNOWN
//       void read(int64_t i, pg::FieldSink& out);    // element i: out.number("x", 3), out.tensor("y", PG_F32, {4}),
//       ...
//     };
//   };
//   PG_SOURCE(Lines, "lines", "Lines of a file").attr(&Lines::path, "path", "the file", PG_ATTR_REQUIRED);
//
// One that is read by position may have `void gather(const int64_t* positions, uint64_t count, pg::FieldSink& out)`:
// many elements as one (data.h). One that is read in order says `static constexpr bool in_order = true;` in Open. Where
// its count is unknown its `bool read(...)` answers false at the end; it may have `bool skip(int64_t i)`, which goes
// over an element.
//
//   struct Jitter {                                  // a transform's options
//     double by = 0.1;
//     void check() const;                            // if there: throws on options that make no sense
//     void apply(const pg::TransformCall& call, pg::FieldSink& out) const;   // or in a class Open, as above
//   };                                               // options with texts need an Open, to keep them
//   PG_TRANSFORM(Jitter, "jitter", "...").attr(&Jitter::by, "by", "...");
//
//   struct Ppm {                                     // a codec
//     static constexpr const char *name = "ppm", *doc = "...", *extensions = ".ppm";
//     struct DecodeOptions {};
//     struct EncodeOptions { int64_t quality = 90; };
//     static bool matches(const unsigned char* head, uint64_t count);
//     static pg::CodedInfo probe(const pg::Bytes& from);
//     static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink);
//     static void encode(const pg::Item& what, const EncodeOptions& options, const pg::Notes& notes, pg::ByteSink& to);
//   };                                               // without encode: it only decodes
//   PG_CODEC(Ppm).encode_attr(&Ppm::EncodeOptions::quality, "quality", "1 to 100");
//
// Options are structs as layer.hpp has them; a `const char*` is a text besides. Of sources and transforms others are
//     const pg_texts* files = nullptr;       // a list of texts: pg::texts_of(files)
//     const pg_field* table = nullptr;       // a tensor, NULL where none was given
//     const pg_tensors* tensors = nullptr;   // tensors by name
// whose contents live as long as what was opened with them. Everything may run on any thread. A plugin is, or has in
// its pg::Provides, a pg::DataTable.
#pragma once

#include <memory>

#include "perigee/data.h"
#include "perigee/format.hpp"
#include "perigee/layer.hpp"

namespace pg {

struct CodedInfo {
  uint32_t dtype = PG_U8;
  std::vector<int64_t> shape;
  uint32_t scales = 1;  // bit k: can be decoded 2^k times smaller
};

// Bytes for a codec to decode: of a file, or that lie in memory.
struct Coded {
  std::string path;  // "" where `data` is meant
  const void* data = nullptr;
  uint64_t count = 0;
  std::string codec;    // "": told by how bytes begin, or a path ends
  std::string options;  // lines "key=value"
};

struct Decoded {
  uint32_t dtype = 0;
  std::vector<int64_t> shape;
  void* data = nullptr;
};

std::vector<std::string> texts_of(const pg_texts* texts);

// ---- fields ----

class FieldSink {
 public:
  explicit FieldSink(const pg_field_sink* raw) : raw_(raw) {}

  // Memory for a dense, row-major tensor, to be filled before the next call. NULL only for an empty tensor.
  template <class T = void>
  T* tensor(const char* name, uint32_t dtype, std::initializer_list<int64_t> shape) {
    return static_cast<T*>(tensor(name, dtype, static_cast<uint32_t>(shape.size()), shape.begin()));
  }
  void* tensor(const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape);
  void number(const char* name, double value);
  void boolean(const char* name, bool value);
  void bytes(const char* name, const void* data, uint64_t count);
  void text(const char* name, const std::string& value) { bytes(name, value.data(), value.size()); }
  void texts(const char* name, const std::vector<std::string>& values);
  void drop(const char* name);
  // Slices of a tensor among the options, along its first axis: one, which is not copied, and many, which are.
  void slice(const char* name, const pg_field& of, int64_t index);
  void slices(const char* name, const pg_field& of, const int64_t* indices, uint64_t count);
  // What the header of bytes says to a codec, of this plugin or another, and the field that it makes of them: a tensor
  // that is the field's until the sink's next call.
  CodedInfo probe(const Coded& what) const;
  Decoded decode(const char* name, const Coded& what);
  const pg_field_sink* raw() const { return raw_; }

 private:
  template <class Entry>
  const Entry& need(const Entry& entry, uint32_t end) const;
  void* add(const pg_field& field, bool has_contents);
  const pg_field_sink* raw_;
};

class TransformCall {
 public:
  explicit TransformCall(const pg_transform_call* raw) : raw(raw) {}
  const pg_transform_call* const raw;

  const pg_field* find(const char* name) const;  // NULL: there is none
  // Each throws where there is no such field, naming those that there are, or where it is something else.
  const pg_field& tensor(const char* name) const;
  const pg_field& tensor(const char* name, uint32_t dtype) const;
  double number(const char* name) const;
  std::string_view bytes(const char* name) const;
  std::vector<std::string_view> texts(const char* name) const;

  // Draw `i` of this element: uniform in [0, 1). Any i may be asked for at any time.
  double uniform(uint64_t i) const;

 private:
  const pg_field& need(const char* name, uint32_t kind) const;
};

// ---- bytes ----

class Bytes {
 public:
  explicit Bytes(const pg_bytes* raw) : raw_(raw) {}
  uint64_t size() const { return raw_->count; }
  const unsigned char* data() const { return static_cast<const unsigned char*>(raw_->data); }  // NULL: not in memory
  void read(uint64_t offset, void* target, uint64_t count) const;

 private:
  const pg_bytes* raw_;
};

class ByteSink {
 public:
  explicit ByteSink(const pg_byte_sink* raw) : raw_(raw) {}
  void write(const void* bytes, uint64_t count);

 private:
  const pg_byte_sink* raw_;
};

[[noreturn]] void fail_damaged(const std::string& message);  // PG_E_DATA_LOSS

template <class Options>
struct Decode {
  uint32_t scale;
  int64_t max_pixels;
  std::array<int64_t, 2> begin, extent;
  Options options;
};

// ---- registration ----

void add_source(const pg_source_info& info);
void add_transform(const pg_transform_info& info);
void add_codec(const pg_codec_info& info);

namespace detail {

template <class T>
struct OptionList {
  template <class Field>
  void add(Field T::*field, const char* name, const char* doc, uint32_t flags) {
    list.add(field, kind_of<Field>(), name, doc, flags);
  }
  template <size_t N>
  void choice(int32_t T::*field, const char* name, const char* doc, const char* const (&choices)[N]) {
    pg_attr_info& info = list.add(field, PG_ATTR_CHOICE, name, doc, 0);
    info.choices = choices, info.choice_count = N;
  }
  template <class Field>
  static constexpr uint32_t kind_of() {
    if constexpr (std::is_same_v<Field, const char*>)
      return PG_ATTR_TEXT;
    else if constexpr (std::is_same_v<Field, const pg_texts*>)
      return PG_ATTR_TEXTS;
    else if constexpr (std::is_same_v<Field, const pg_field*>)
      return PG_ATTR_TENSOR;
    else if constexpr (std::is_same_v<Field, const pg_tensors*>)
      return PG_ATTR_TENSORS;
    else
      return AttrList::kind_of<Field>();
  }
  AttrList list;
  T defaults{};
};

template <class T>
void check_options(const T& options) {
  if constexpr (requires { options.check(); }) options.check();
}

void fill_coded(const CodedInfo& from, uint32_t flags, pg_coded_info& out);
Item item_of(const pg_tensor& t);

}  // namespace detail

// What schemas of sources and transforms share: their options.
template <class T, class Info, class Self>
class OptionSchema {
 public:
  OptionSchema(const OptionSchema&) = delete;
  template <class Field>
  Self& attr(Field T::*field, const char* name, const char* doc, uint32_t flags = 0) {
    options_.add(field, name, doc, flags);
    return publish();
  }
  template <size_t N>
  Self& choice(int32_t T::*field, const char* name, const char* doc, const char* const (&choices)[N]) {
    options_.choice(field, name, doc, choices);
    return publish();
  }

 protected:
  OptionSchema(const char* name, const char* doc) {
    info_.name = name, info_.doc = doc;
    info_.attr_size = sizeof(T);
    info_.defaults = &options_.defaults;
    info_.user = this;
  }
  Self& publish() {
    info_.attrs = options_.list.data();
    info_.attr_count = options_.list.count();
    return static_cast<Self&>(*this);
  }
  static const char* name_of(void* user) { return static_cast<Self*>(user)->info_.name; }

  Info info_{};
  detail::OptionList<T> options_;
};

template <class T>
class SourceSchema : public OptionSchema<T, pg_source_info, SourceSchema<T>> {
  using Base = OptionSchema<T, pg_source_info, SourceSchema<T>>;
  using Open = typename T::Open;

 public:
  SourceSchema(const char* name, const char* doc) : Base(name, doc) {
    pg_source_info& info = this->info_;
    info.size = PG_SIZE(pg_source_info, gather);
    if constexpr (requires { Open::in_order; }) info.flags = Open::in_order ? PG_SOURCE_IN_ORDER : 0;
    info.open = open, info.read = read, info.close = close;
    if constexpr (requires(Open & source) { source.skip(0); }) info.skip = skip;
    if constexpr (requires(Open & source, FieldSink & out) { source.gather(nullptr, 0, out); }) info.gather = gather;
    add_source(info);
  }

 private:
  static int32_t open(void* user, const void* attrs, void** source, int64_t* count, pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] {
      const T& options = *static_cast<const T*>(attrs);
      detail::check_options(options);
      auto opened = std::make_unique<Open>(options);
      *count = opened->count();
      *source = opened.release();
    });
  }
  static int32_t read(void* user, void* source, int64_t position, const pg_field_sink* raw, uint32_t* end,
                      pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] {
      FieldSink sink(raw);
      Open& opened = *static_cast<Open*>(source);
      if constexpr (std::is_same_v<decltype(opened.read(position, sink)), bool>)
        *end = opened.read(position, sink) ? 0 : 1;
      else
        opened.read(position, sink);
    });
  }
  static int32_t skip(void* user, void* source, int64_t position, uint32_t* end, pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] { *end = static_cast<Open*>(source)->skip(position) ? 0 : 1; });
  }
  static int32_t gather(void* user, void* source, uint64_t count, const int64_t* positions, const pg_field_sink* raw,
                        pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] {
      FieldSink sink(raw);
      static_cast<Open*>(source)->gather(positions, count, sink);
    });
  }
  static void close(void*, void* source) noexcept { delete static_cast<Open*>(source); }
};

template <class T>
class TransformSchema : public OptionSchema<T, pg_transform_info, TransformSchema<T>> {
  using Base = OptionSchema<T, pg_transform_info, TransformSchema<T>>;

 public:
  TransformSchema(const char* name, const char* doc) : Base(name, doc) {
    pg_transform_info& info = this->info_;
    info.size = PG_SIZE(pg_transform_info, close);
    info.open = open, info.apply = apply, info.close = close;
    add_transform(info);
  }

 private:
  template <class U>
  static U* make(const U& options, ...) {
    return new U(options);
  }
  template <class U>
  static typename U::Open* make(const U& options, int) {
    return new typename U::Open(options);
  }
  using Made = std::remove_pointer_t<decltype(make<T>(std::declval<const T&>(), 0))>;

  static int32_t open(void* user, const void* attrs, void** transform, pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] {
      const T& options = *static_cast<const T*>(attrs);
      detail::check_options(options);
      *transform = make<T>(options, 0);
    });
  }
  static int32_t apply(void* user, void* transform, const pg_transform_call* call, const pg_field_sink* raw,
                       pg_error* error) noexcept {
    return guard(error, Base::name_of(user), [&] {
      FieldSink sink(raw);
      static_cast<const Made*>(transform)->apply(TransformCall(call), sink);
    });
  }
  static void close(void*, void* transform) noexcept { delete static_cast<Made*>(transform); }
};

template <class T>
class CodecSchema {
  using DecodeOptions = typename T::DecodeOptions;
  using EncodeOptions = typename T::EncodeOptions;

 public:
  CodecSchema() {
    info_.size = PG_SIZE(pg_codec_info, encode);
    if constexpr (requires { T::flags; }) info_.flags = T::flags;
    info_.name = T::name, info_.doc = T::doc, info_.extensions = T::extensions;
    info_.decode_attr_size = sizeof(DecodeOptions), info_.decode_defaults = &decode_.defaults;
    info_.encode_attr_size = sizeof(EncodeOptions), info_.encode_defaults = &encode_.defaults;
    info_.matches = matches, info_.probe = probe, info_.decode = decode;
    if constexpr (requires(const Item& what, const EncodeOptions& options, ByteSink& to) {
                    T::encode(what, options, Notes(), to);
                  }) {
      info_.encode = encode;
    }
    add_codec(info_);
  }
  CodecSchema(const CodecSchema&) = delete;
  template <class Field>
  CodecSchema& decode_attr(Field DecodeOptions::*field, const char* name, const char* doc, uint32_t flags = 0) {
    decode_.add(field, name, doc, flags);
    info_.decode_attrs = decode_.list.data(), info_.decode_attr_count = decode_.list.count();
    return *this;
  }
  template <class Field>
  CodecSchema& encode_attr(Field EncodeOptions::*field, const char* name, const char* doc, uint32_t flags = 0) {
    encode_.add(field, name, doc, flags);
    info_.encode_attrs = encode_.list.data(), info_.encode_attr_count = encode_.list.count();
    return *this;
  }

 private:
  static int32_t matches(void*, const void* head, uint64_t count) noexcept {
    return T::matches(static_cast<const unsigned char*>(head), count) ? 1 : 0;
  }
  static int32_t probe(void*, const pg_bytes* from, pg_coded_info* out, pg_error* error) noexcept {
    return guard(error, T::name, [&] {
      uint32_t flags = 0;
      if constexpr (requires { T::flags; }) flags = T::flags;
      detail::fill_coded(T::probe(Bytes(from)), flags, *out);
    });
  }
  static int32_t decode(void*, const pg_bytes* from, const pg_decode* how, const pg_sink* raw,
                        pg_error* error) noexcept {
    return guard(error, T::name, [&] {
      Sink sink(raw);
      T::decode(Bytes(from),
                Decode<DecodeOptions>{how->scale,
                                      how->max_pixels,
                                      {how->begin[0], how->begin[1]},
                                      {how->extent[0], how->extent[1]},
                                      *static_cast<const DecodeOptions*>(how->attrs)},
                sink);
    });
  }
  static int32_t encode(void*, const pg_tensor* what, const void* attrs, uint32_t note_count, const char* const* notes,
                        const pg_byte_sink* raw, pg_error* error) noexcept {
    return guard(error, T::name, [&] {
      ByteSink sink(raw);
      T::encode(detail::item_of(*what), *static_cast<const EncodeOptions*>(attrs), detail::notes_of(note_count, notes),
                sink);
    });
  }

  pg_codec_info info_{};
  detail::OptionList<DecodeOptions> decode_;
  detail::OptionList<EncodeOptions> encode_;
};

// Schemas live as long as the process: the table points into them.
template <class T>
SourceSchema<T>& add_source(const char* name, const char* doc) {
  return *new SourceSchema<T>(name, doc);
}
template <class T>
TransformSchema<T>& add_transform(const char* name, const char* doc) {
  return *new TransformSchema<T>(name, doc);
}
template <class T>
CodecSchema<T>& add_codec() {
  return *new CodecSchema<T>();
}

const pg_data* data_table();

struct DataTable {
  static constexpr const char* id = PG_IFACE_DATA;
  template <class Plugin>
  const void* table() const {
    return data_table();
  }
};

}  // namespace pg

#define PG_SOURCE(Type, name, doc) [[maybe_unused]] static auto& pg_source_##Type = pg::add_source<Type>(name, doc)
#define PG_TRANSFORM(Type, name, doc) \
  [[maybe_unused]] static auto& pg_transform_##Type = pg::add_transform<Type>(name, doc)
#define PG_CODEC(Type) [[maybe_unused]] static auto& pg_codec_##Type = pg::add_codec<Type>()
