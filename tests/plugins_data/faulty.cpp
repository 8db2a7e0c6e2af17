// SPDX-License-Identifier: Apache-2.0
// Sources, transforms and codecs that break the rules of perigee/data.h, one each; and one of each kind of field.
#include <perigee/data.hpp>

namespace {

// The fault is an option, so that one source has them all.
struct Faulty {
  int32_t fault = 0;
  class Open {
   public:
    explicit Open(const Faulty& options) : fault_(options.fault) {}
    int64_t count() const { return fault_ == 1 ? -3 : fault_ == 2 ? PG_COUNT_UNKNOWN : 4; }
    void read(int64_t i, pg::FieldSink& out) const {
      const int64_t negative = -1;
      switch (fault_) {
        case 3: out.number("", 1); break;
        case 4: out.tensor("x", PG_DTYPE(77, 7), {2}); break;
        case 5: out.tensor("x", PG_F32, 1, &negative); break;
        case 6: out.drop("x"); break;
        case 7: throw 5;
        case 8: out.tensor("x", PG_F32, {0, 3}); break;
        case 9: break;  // no fields at all
        default: {
          auto* x = out.tensor<float>("x", PG_F32, {2});
          x[0] = static_cast<float>(i), x[1] = 1;
          out.number("n", 2.5), out.boolean("b", i % 2 == 0), out.text("s", "t" + std::to_string(i));
          out.text("empty", ""), out.number("x2", 1), out.text("x2", "replaced");
        }
      }
    }

   private:
    const int32_t fault_;
  };
};
const char* const kFaults[] = {"none",     "count", "unknown", "name",  "dtype",
                               "negative", "drop",  "throws",  "empty", "nothing"};
PG_SOURCE(Faulty, "faulty_source", "Breaks a rule").choice(&Faulty::fault, "fault", "which one", kFaults);

// Says that it has three elements, and ends behind two.
struct Short {
  int64_t says = 3;
  class Open {
   public:
    static constexpr bool in_order = true;
    explicit Open(const Short& options) : says_(options.says) {}
    int64_t count() const { return says_; }
    static bool read(int64_t i, pg::FieldSink& out) {
      if (i < 2) out.number("i", static_cast<double>(i));
      return i < 2;
    }

   private:
    const int64_t says_;
  };
};
PG_SOURCE(Short, "faulty_short", "Ends early").attr(&Short::says, "says", "its count");

// Fails at one element, and drops a field.
struct Dropper {
  int64_t fails_at = -1;
  const char* drops = "s";
  class Open {
   public:
    explicit Open(const Dropper& options) : fails_at_(options.fails_at), drops_(options.drops) {}
    void apply(const pg::TransformCall& call, pg::FieldSink& out) const {
      if (call.raw->sample == fails_at_) pg::fail_argument("this is the one");
      out.drop(drops_.c_str());
      out.number("was", call.number("n") + static_cast<double>(call.raw->sample));
    }

   private:
    const int64_t fails_at_;
    const std::string drops_;
  };
};
PG_TRANSFORM(Dropper, "faulty_dropper", "Drops a field")
    .attr(&Dropper::fails_at, "fails_at", "element, from 0")
    .attr(&Dropper::drops, "drops", "a field");

// A codec of no picture, and of shapes that cannot be.
struct Strange {
  static constexpr const char *name = "strange", *doc = "Eight bytes", *extensions = ".strange";
  struct DecodeOptions {
    int64_t times = 1;
  };
  struct EncodeOptions {};
  static bool matches(const unsigned char* head, uint64_t count) { return count == 8 && head[0] == 1; }
  static pg::CodedInfo probe(const pg::Bytes&) { return {PG_F32, {-2}}; }
  static void decode(const pg::Bytes& from, const pg::Decode<DecodeOptions>& how, pg::Sink& sink) {
    unsigned char bytes[8];
    from.read(0, bytes, 8);
    auto* out = static_cast<float*>(sink.tensor("data", PG_F32, {8}));
    for (int i = 0; i < 8; i++) out[i] = static_cast<float>(bytes[i] * how.options.times);
  }
};
PG_CODEC(Strange).decode_attr(&Strange::DecodeOptions::times, "times", "a factor");

}  // namespace

PG_PLUGIN(pg::Provides<pg::DataTable>, "faulty_data", "1.0.0", "data");
