// SPDX-License-Identifier: Apache-2.0
// my_noise: a transform. uint8 becomes float32 from 0 to 1, with noise that is the same whatever thread draws it.
#include <perigee/data.hpp>

namespace {

struct Noise {
  const char* field = "x";
  double by = 0.1;

  class Open {
   public:
    explicit Open(const Noise& options) : field_(options.field), by_(options.by) {
      if (!(by_ >= 0)) pg::fail_argument("by must be 0 or more");
    }
    void apply(const pg::TransformCall& call, pg::FieldSink& out) const {
      const pg_field& x = call.tensor(field_.c_str(), PG_U8);
      auto* y = static_cast<float*>(out.tensor(field_.c_str(), PG_F32, x.rank, x.shape));
      const auto* bytes = static_cast<const unsigned char*>(x.data);
      for (uint64_t i = 0; i < x.bytes; i++)
        y[i] = static_cast<float>(bytes[i] / 255.0 + by_ * (2 * call.uniform(i) - 1));
    }

   private:
    const std::string field_;
    const double by_;
  };
};

PG_TRANSFORM(Noise, "my_noise", "Bytes as numbers from 0 to 1, and noise")
    .attr(&Noise::field, "field", "of uint8, which becomes float32")
    .attr(&Noise::by, "by", "the noise is uniform from -by to by");

}  // namespace
