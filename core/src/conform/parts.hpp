// SPDX-License-Identifier: Apache-2.0
// What checks of the parts of pipelines (perigee/data.h) are written with: elements that parts make, kept so that two
// can be compared, and what is said of each part.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conform/probe.hpp"
#include "data/options.hpp"

namespace perigee::conform {

// What stands in memory that a part was given and did not fill.
enum class Poison : unsigned char { first = 0xa5, second = 0x5a };

// An element, field by field, as a part makes it.
class MadeElement {
 public:
  // `options`: those of the part, of whose tensors it may ask for slices.
  MadeElement(Poison poison, const Options& options) : poison_(poison), options_(options) {}
  MadeElement(const MadeElement&) = delete;
  // Gives and takes fields; what breaks a rule is kept in `problem`.
  pg_field_sink sink();
  // Where it differs from another, or nothing.
  std::string difference(const MadeElement& other) const;
  // Where it is not these, one behind the other along a first axis, or nothing.
  std::string difference(const std::deque<MadeElement>& elements) const;
  bool empty() const { return fields_.empty(); }
  std::string problem;

 private:
  struct Field {
    std::string name;
    uint32_t kind, dtype;
    std::vector<int64_t> shape;
    double number;
    std::vector<uint64_t> words;  // aligned as the host's memory is at least
    uint64_t bytes;
  };
  static void* give(void* context, const pg_field* field, pg_error* error);
  static int32_t drop(void* context, const char* name, pg_error* error);
  static int32_t slice(void* context, const char* name, const pg_field* of, int64_t index, pg_error* error);
  static int32_t slices(void* context, const char* name, const pg_field* of, uint64_t count, const int64_t* indices,
                        pg_error* error);
  static int32_t probe(void* context, const pg_coded* what, pg_coded_info* out, pg_error* error);
  static int32_t decode(void* context, const pg_coded* what, const pg_sink* to, pg_error* error);
  int32_t take(const char* name, const pg_field* of, pg_error* error,
               const std::function<TensorRef(const OptionTensor&)>& make);
  Poison poison_;
  const Options& options_;
  std::deque<Field> fields_;
};

// Runs checks of parts, one after the other, and keeps what they find.
class PartChecks {
 public:
  PartChecks(std::vector<Finding>& found, std::string group, std::string part)
      : found_(found), group_(std::move(group)), part_(std::move(part)) {}
  // false: it failed, and nothing that builds on it can be asked.
  bool check(const char* name, const std::function<void()>& body);
  void not_asked(const std::string& why);

 private:
  std::vector<Finding>& found_;
  const std::string group_, part_;
};

// Calls an entry that ends in a pg_error; raises what it reports.
template <class F, class... A>
void call(const char* what, F entry, A... arguments) {
  pg_error error = pg::make_error();
  const int32_t code = entry(arguments..., &error);
  if (code != PG_OK) wrong(std::string(what) + " fails: " + pg::message_of(code, error));
}
// One that should be refused, with this code and a message.
template <class F, class... A>
void need_refused(const std::string& what, int32_t expected, F entry, A... arguments) {
  pg_error error = pg::make_error();
  const int32_t code = entry(arguments..., &error);
  need(code != PG_OK, what + " is taken");
  need(error.message[0] != '\0', what + " is refused without a message");
  need(code == expected, pg::format("%s is refused with code %d; expected %d (%s)", what.c_str(), code, expected,
                                    pg::message_of(code, error).c_str()));
}

// Runs body(thread) on four threads at once; raises the first problem.
void on_threads(const std::function<void(int)>& body);

void check_codec(const pg_codec_info& codec, std::vector<Finding>& found);

}  // namespace perigee::conform
