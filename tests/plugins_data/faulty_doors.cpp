// SPDX-License-Identifier: Apache-2.0
// A source that asks for slices and codecs as none should, and a transform that takes lists of texts and a tensor.
#include <perigee/data.hpp>

namespace {

struct Slices {
  const pg_tensors* tensors = nullptr;
  int32_t fault = 0;
  class Open {
   public:
    explicit Open(const Slices& options) : tensors_(*options.tensors), fault_(options.fault) {}
    static int64_t count() { return 3; }
    void read(int64_t i, pg::FieldSink& out) const {
      const pg_field &x = *tensors_.list[0], foreign = x;
      pg::Coded coded;
      switch (fault_) {
        case 1: return out.slice("x", x, 3);
        case 2: return out.slice("x", x, -1);
        case 3: return out.slice("x", foreign, 0);
        case 4: return out.slice("", x, 0);
        case 5: return refuse_coded(out);
        case 6: coded.codec = "nobody"; break;
        case 7: coded.data = "hello", coded.count = 5; break;
        case 8: return refuse_texts(out);
        default:
          for (uint32_t k = 0; k < tensors_.count; k++) out.slice(tensors_.list[k]->name, *tensors_.list[k], i);
          return;
      }
      out.decode("x", coded);
    }
    void gather(const int64_t* positions, uint64_t count, pg::FieldSink& out) const {
      for (uint32_t k = 0; k < tensors_.count; k++)
        out.slices(tensors_.list[k]->name, *tensors_.list[k], positions, fault_ == 9 ? count - 1 : count);
    }

   private:
    static void refuse_coded(pg::FieldSink& out) {
      pg_coded what{};
      what.size = PG_SIZE(pg_coded, options);
      pg_error error = pg::make_error();
      pg_coded_info info{};
      info.size = PG_SIZE(pg_coded_info, shape);
      pg::check(out.raw()->probe(out.raw()->context, &what, &info, &error), error);
    }
    static void refuse_texts(pg::FieldSink& out) {
      pg_field field{};
      field.size = PG_SIZE(pg_field, data);
      field.kind = PG_FIELD_TEXTS, field.name = "x", field.bytes = 3;
      pg_error error = pg::make_error();
      out.raw()->field(out.raw()->context, &field, &error);
      pg::check(error.code, error);
    }
    const pg_tensors& tensors_;
    const int32_t fault_;
  };
};
const char* const kFaults[] = {"none",  "index", "negative", "foreign", "name",
                               "coded", "codec", "bytes",    "texts",   "gather"};
PG_SOURCE(Slices, "faulty_slices", "Breaks a rule")
    .attr(&Slices::tensors, "tensors", "of three slices", PG_ATTR_REQUIRED | PG_ATTR_AS_IS)
    .choice(&Slices::fault, "fault", "which one", kFaults);

struct Joiner {
  const pg_texts* words = nullptr;
  const pg_field* weights = nullptr;
  class Open {
   public:
    explicit Open(const Joiner& options) : words_(pg::texts_of(options.words)), weights_(options.weights) {}
    void apply(const pg::TransformCall& call, pg::FieldSink& out) const {
      std::string text;
      for (const std::string_view tag : call.texts("tags")) text += (text.empty() ? "" : " ") + std::string(tag);
      for (const std::string& word : words_) text += " " + word;
      double sum = 0;
      for (int64_t i = 0; weights_ != nullptr && i < weights_->shape[0]; i++)
        sum += static_cast<const float*>(weights_->data)[i];
      out.text("joined", text + pg::format(" %g", sum));
      out.texts("tags", {"replaced"});
    }

   private:
    const std::vector<std::string> words_;
    const pg_field* const weights_;
  };
};
PG_TRANSFORM(Joiner, "faulty_joiner", "Joins texts")
    .attr(&Joiner::words, "words", "more of them")
    .attr(&Joiner::weights, "weights", "float32");

}  // namespace
