// SPDX-License-Identifier: Apache-2.0
// csv: a source by position. Rows of tables in text: of each field's columns a number, several as a vector, or a text.
// A first pass over the files says where rows begin; compressed ones stay in memory.
#include "csv.hpp"

#include <cstring>

#include "contents.hpp"
#include "perigee/data.hpp"

namespace {

using formats::CsvField, formats::FileContents;
using pg::format;

struct CsvRows {
  const pg_texts* paths = nullptr;
  const pg_texts* fields = nullptr;
  const pg_texts* types = nullptr;
  const pg_texts* columns = nullptr;
  const pg_texts* defaults = nullptr;
  const char* delimiter = "auto";
  int64_t skip = 0;
  pg::Bool header = false;

  void check() const {
    if (paths->count == 0) pg::fail_argument("paths has none; at least one is needed");
    if (fields->count == 0) pg::fail_argument("fields has none; at least one is needed");
    if (types->count != fields->count || columns->count != fields->count || defaults->count != fields->count)
      pg::fail_argument("types, columns and defaults must have one for each of fields");
    if (skip < 0) pg::fail_argument(format("skip must be 0 or more, got %lld", static_cast<long long>(skip)));
    if (std::strcmp(delimiter, "auto") != 0 && (std::strlen(delimiter) != 1 || std::strchr("\"\r\n", *delimiter)))
      pg::fail_argument(std::string("delimiter must be one character, got \"") + delimiter + "\"");
  }

  class Open;
};

// A field of the samples: the columns that it is made of.
struct Field {
  std::string name, type;
  bool vector = false;
  struct Column {
    size_t index;
    std::string fallback;  // what an empty one stands for
  };
  std::vector<Column> columns;
};

// Rows as blocks of a file come, but for those with nothing in them.
class Rows {
 public:
  Rows(const FileContents& file, char delimiter) : file_(file), delimiter_(delimiter) {}

  bool next(bool blank_too = false) {
    for (;;) {
      begin_ += row_bytes_;
      row_bytes_ = 0;
      line_ += lines_;
      lines_ = 0;
      if (begin_ == file_.size()) return false;
      find_end();
      if (blank_too || !formats::trimmed(row_).empty()) return true;
    }
  }
  std::string_view row() const { return row_; }
  uint64_t begin() const { return begin_; }
  int64_t line() const { return line_; }

 private:
  void find_end() {
    for (;;) {
      const std::string_view rest = std::string_view(block_).substr(begin_ - block_begin_);
      bool open = false;
      size_t end = formats::row_end(rest, delimiter_, open);
      const bool last = block_begin_ + block_.size() == file_.size();
      if (end == std::string_view::npos && !last) {
        load();
        continue;
      }
      if (end == std::string_view::npos && open)
        pg::fail_data(file_.path(),
                      format("line %lld: a field that begins with a quote has no end", static_cast<long long>(line_)));
      row_bytes_ = std::min(end, rest.size() - 1) + 1;
      row_ = rest.substr(0, std::min(end, rest.size()));
      lines_ = 1 + std::count(row_.begin(), row_.end(), '\n');
      if (begin_ == 0 && row_.starts_with("\xef\xbb\xbf")) row_.remove_prefix(3);
      if (row_.ends_with('\r')) row_.remove_suffix(1);
      return;
    }
  }
  // The row that is looked at, and as much again behind it.
  void load() {
    block_.erase(0, begin_ - block_begin_);
    block_begin_ = begin_;
    const uint64_t at = block_begin_ + block_.size();
    if (block_.size() > kLongest)
      pg::fail_data(file_.path(), format("line %lld: a row of more than %llu bytes", static_cast<long long>(line_),
                                         static_cast<unsigned long long>(kLongest)));
    const size_t had = block_.size();
    block_.resize(had + std::min<uint64_t>(file_.size() - at, std::max<size_t>(kBlock, had)));
    file_.read(at, block_.data() + had, block_.size() - had);
  }

  static constexpr uint64_t kBlock = 1 << 18, kLongest = 1 << 26;
  const FileContents& file_;
  const char delimiter_;
  std::string block_;
  std::string_view row_;
  uint64_t block_begin_ = 0, begin_ = 0, row_bytes_ = 0;
  int64_t line_ = 1, lines_ = 0;
};

class CsvRows::Open {
 public:
  explicit Open(const CsvRows& options)
      : files_(pg::texts_of(options.paths)), skip_(options.skip), header_(options.header) {
    const std::string delimiter = options.delimiter, &first = files_.paths()[0];
    delimiter_ = delimiter != "auto" ? delimiter[0] : first.find(".tsv") != std::string::npos ? '\t' : ',';
    read_fields(options);
    for (size_t k = 0; k < files_.paths().size(); k++) {
      if (files_.paths()[k].ends_with(".gz") && !formats::is_gzip(formats::File::open_to_read(files_.paths()[k])))
        pg::fail_data(files_.paths()[k], "not gzip data: it does not begin with gzip's magic");
      index(k, options);
    }
  }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

  void read(int64_t i, pg::FieldSink& out) {
    thread_local std::string text;
    thread_local std::vector<CsvField> parts;
    const Row row = rows_[static_cast<size_t>(i)];
    const formats::FileContentsRef file = files_.get(row.file);
    const bool last = static_cast<size_t>(i) + 1 == rows_.size() || rows_[static_cast<size_t>(i) + 1].file != row.file;
    text.resize((last ? file->size() : rows_[static_cast<size_t>(i) + 1].begin) - row.begin);
    file->read(row.begin, text.data(), text.size());
    bool open = false;
    std::string_view whole = std::string_view(text).substr(0, formats::row_end(text, delimiter_, open));
    if (row.begin == 0 && whole.starts_with("\xef\xbb\xbf")) whole.remove_prefix(3);
    if (whole.ends_with('\r')) whole.remove_suffix(1);
    const auto where = [&] { return format("line %lld", static_cast<long long>(line_of(*file, row.begin))); };
    split(*file, whole, parts, where);
    if (parts.size() != columns_)
      pg::fail_data(file->path(), format("%s: %zu columns, expected %zu as in the lines before", where().c_str(),
                                         parts.size(), columns_));
    for (const Field& field : fields_) {
      if (field.type == "string")
        give_text(field, parts, out);
      else if (field.type == "int64")
        give<int64_t>(field, PG_I64, parts, file->path(), where, out);
      else if (field.type == "float64")
        give<double>(field, PG_F64, parts, file->path(), where, out);
      else
        give<float>(field, PG_F32, parts, file->path(), where, out);
    }
  }

 private:
  struct Row {
    uint64_t begin : 44, file : 20;
  };

  void read_fields(const CsvRows& options) {
    for (uint32_t i = 0; i < options.fields->count; i++) {
      const std::string name = options.fields->list[i];
      std::string type = options.types->list[i];
      if (name.empty()) pg::fail_argument("fields must have names");
      const bool vector = type.ends_with("[]");
      if (vector) type.resize(type.size() - 2);
      if (type != "float32" && type != "float64" && type != "int64" && (type != "string" || vector))
        pg::fail_argument(
            "types must be float32, float64, int64, vectors of them such as \"float32[]\", or string; "
            "got \"" +
            type + "\"");
      if (fields_.empty() || fields_.back().name != name) fields_.push_back({name, type, vector, {}});
      Field& field = fields_.back();
      if (!field.columns.empty() && (!vector || !field.vector || field.type != type))
        pg::fail_argument("field \"" + name + "\" has several columns, and is no vector of one type");
      field.columns.push_back({0, options.defaults->list[i]});
    }
  }

  // Which columns the fields are of: by name where the first file's header has them, or by number.
  void find_columns(const std::string& path, const CsvRows& options) {
    size_t i = 0;
    for (Field& field : fields_) {
      for (Field::Column& column : field.columns) {
        const std::string wanted = options.columns->list[i++];
        if (header_) {
          const auto found = std::find(names_.begin(), names_.end(), wanted);
          if (found == names_.end()) {
            std::string known;
            for (const std::string& name : names_) known += (known.empty() ? "" : ", ") + name;
            pg::fail_argument(path + ": there is no column \"" + wanted + "\"; there are " + known);
          }
          column.index = static_cast<size_t>(found - names_.begin());
        } else {
          int64_t number = 0;
          if (!formats::parse_number(std::string_view(wanted), number) || number < 1)
            pg::fail_argument("columns must be numbers from 1 without a header, got \"" + wanted + "\"");
          if (static_cast<uint64_t>(number) > columns_)
            pg::fail_argument(
                format("%s: there is no column %s; there are %zu", path.c_str(), wanted.c_str(), columns_));
          column.index = static_cast<size_t>(number - 1);
        }
      }
    }
  }

  // Where the rows of a file begin.
  void index(size_t k, const CsvRows& options) {
    if (k >= 1 << 20) pg::fail_argument("more files than 1,048,576");
    const formats::FileContentsRef file = files_.get(k);
    Rows rows(*file, delimiter_);
    for (int64_t i = 0; i < skip_ && rows.next(true);) i++;
    bool first = true;
    std::vector<CsvField> parts;
    while (rows.next()) {
      if (first && (header_ || columns_ == 0)) {
        split(*file, rows.row(), parts, [&] { return format("line %lld", static_cast<long long>(rows.line())); });
        check_first(*file, rows, parts, options);
      }
      if (!first || !header_) rows_.push_back({rows.begin(), k});
      first = false;
    }
    if (first && header_) pg::fail_data(file->path(), "there is no line with the names of columns");
  }
  void check_first(const FileContents& file, const Rows& rows, const std::vector<CsvField>& parts,
                   const CsvRows& options) {
    std::vector<std::string> names;
    for (const CsvField& part : parts) names.push_back(header_ ? plain(part) : "");
    if (columns_ == 0) {
      columns_ = parts.size();
      names_ = std::move(names);
      find_columns(file.path(), options);
    } else if (names != names_) {
      pg::fail_data(file.path(), format("line %lld: the names of its columns are not those of %s",
                                        static_cast<long long>(rows.line()), files_.paths()[0].c_str()));
    }
  }

  template <class Where>
  void split(const FileContents& file, std::string_view row, std::vector<CsvField>& parts, const Where& where) const {
    if (!formats::split_row(row, delimiter_, parts))
      pg::fail_data(file.path(),
                    format("%s, column %zu: there is text behind its closing quote", where().c_str(), parts.size()));
  }
  static std::string plain(const CsvField& field) {
    std::string text(field.text);
    for (size_t at = 0; field.doubled && (at = text.find("\"\"", at)) != std::string::npos; at++) text.erase(at, 1);
    return text;
  }

  static void give_text(const Field& field, const std::vector<CsvField>& parts, pg::FieldSink& out) {
    const Field::Column& column = field.columns[0];
    const CsvField& part = parts[column.index];
    if (part.text.empty())
      out.text(field.name.c_str(), column.fallback);
    else if (part.doubled)
      out.text(field.name.c_str(), plain(part));
    else
      out.bytes(field.name.c_str(), part.text.data(), part.text.size());
  }

  template <class T, class Where>
  static void give(const Field& field, uint32_t dtype, const std::vector<CsvField>& parts, const std::string& path,
                   const Where& where, pg::FieldSink& out) {
    const auto count = static_cast<int64_t>(field.columns.size());
    auto* target = static_cast<T*>(out.tensor(field.name.c_str(), dtype, field.vector ? 1 : 0, &count));
    for (const Field::Column& column : field.columns) {
      std::string_view text = formats::trimmed(parts[column.index].text);
      if (text.empty()) text = column.fallback;
      if (!formats::parse_number(text, *target))
        pg::fail_data(
            path, format("%s, column %zu: \"%.40s\" is not %s (field \"%s\")", where().c_str(), column.index + 1,
                         std::string(text).c_str(),
                         std::is_integral_v<T> ? "a whole number that int64 holds" : "a number", field.name.c_str()));
      target++;
    }
  }

  // The number of the line that begins there: counted anew, as only errors ask.
  static int64_t line_of(const FileContents& file, uint64_t begin) {
    std::vector<char> block(1 << 18);
    int64_t line = 1;
    for (uint64_t at = 0; at < begin; at += block.size()) {
      const uint64_t some = std::min<uint64_t>(begin - at, block.size());
      file.read(at, block.data(), some);
      line += std::count(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(some), '\n');
    }
    return line;
  }

  formats::ManyFiles files_;
  const int64_t skip_;
  const bool header_;
  char delimiter_ = ',';
  std::vector<Field> fields_;
  size_t columns_ = 0;  // of every row; 0: no row has been seen
  std::vector<std::string> names_;
  std::vector<Row> rows_;
};

PG_SOURCE(CsvRows, "csv",
          "Rows of tables in text: samples of fields by name, each of one column, or a vector of several")
    .attr(&CsvRows::paths, "paths", "the files, plain or gzip", PG_ATTR_REQUIRED)
    .attr(&CsvRows::fields, "fields", "what samples call each column; one name several times in succession: a vector",
          PG_ATTR_REQUIRED)
    .attr(&CsvRows::types, "types", "of each: float32, float64, int64, string; float32[] and so on of vectors",
          PG_ATTR_REQUIRED)
    .attr(&CsvRows::columns, "columns", "which it is: a name with a header, else a number from 1", PG_ATTR_REQUIRED)
    .attr(&CsvRows::defaults, "defaults", "what stands for an empty one; \"\": nothing does", PG_ATTR_REQUIRED)
    .attr(&CsvRows::delimiter, "delimiter", "what stands between columns; auto: a tab of .tsv, else a comma")
    .attr(&CsvRows::skip, "skip", "lines at the beginning of each file that are left out")
    .attr(&CsvRows::header, "header", "the first line behind has the names of columns");

}  // namespace
