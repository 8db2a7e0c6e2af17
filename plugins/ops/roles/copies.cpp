// SPDX-License-Identifier: Apache-2.0
// The operators that the host carries out with a device's own copy entry.
#include "../rules.hpp"

namespace pg::schema_copies {
namespace {

constexpr int32_t kChannelsLast = 2, kChannelsLast3d = 3;  // choices of "memory_format"

PG_OP("clone")
    .category("memory")
    .doc("A dense copy, in the order of axes that x lies in, or another.")
    .role("clone")
    .input("x", kStored, "any shape")
    .choice(
        "memory_format", {"preserve", "contiguous", "channels_last", "channels_last_3d"}, 0,
        "the order of axes in memory: that of x, row-major, or that of images [n, c, h, w] or volumes [n, c, d, h, w] "
        "with the channels innermost")
    .output("y", "shape of x")
    .shape([](ShapeContext& c) {
      const int32_t format = c.get<Choice>("memory_format");
      c.need(format != kChannelsLast || c.rank(0) == 4, "channels_last is an order of 4 axes, [n, c, h, w]; got %s",
             c.text(0).c_str());
      c.need(format != kChannelsLast3d || c.rank(0) == 5,
             "channels_last_3d is an order of 5 axes, [n, c, d, h, w]; got %s", c.text(0).c_str());
      like_input(c);
    })
    .grad([](GradContext& g) { g.din(0) = g.dout(0); });

PG_OP("cast")
    .category("memory")
    .doc("x in another dtype. Floating to integer truncates towards zero; to bool: not equal to zero.")
    .role("cast")
    .input("x", kStored, "any shape")
    .attr<Dtype>("dtype", 0, "the dtype")
    .required()
    .output("y", "shape of x")
    .shape([](ShapeContext& c) {
      uint32_t dtype = c.get<Dtype>("dtype");
      c.need(dtype != 0, "no dtype is given");
      c.out(0).set(dtype, c.shape(0));
    })
    .grad([](GradContext& g) { g.din(0) = cast(g.dout(0), g.in(0).dtype()); });

PG_OP("transfer")
    .category("memory")
    .doc("x on another device.")
    .role("transfer")
    .input("x", kStored, "any shape")
    .attr<DeviceNumber>("device", 0, "the host's device number")
    .required()
    .output("y", "shape of x")
    .shape(like_input)
    .grad([](GradContext& g) {
      static constinit OpRef op("transfer", "device");
      g.din(0) = Call(g.builder(), op).input(g.dout(0)).set(0, g.in(0).device()).emit();
    });

// Always written into dst: the in-place form is the only one outside of a graph's replay.
PG_OP("copy")
    .category("memory")
    .doc("Writes src, broadcast and cast, into dst.")
    .role("copy")
    .input("dst", kStored, "any shape; only described: the host writes", PG_INPUT_META)
    .input("src", kStored, "a shape that broadcasts to that of dst")
    .output("y", "dst")
    .traits(PG_OP_IN_PLACE)
    .shape([](ShapeContext& c) {
      check_broadcasts_to(c, 1, 0);
      c.out(0) = c.in(0);
    })
    .grad([](GradContext& g) {
      if (g.needed(1)) g.din(1) = cast(sum_like(g.dout(0), g.in(1)), g.in(1).dtype());
    });

}  // namespace
}  // namespace pg::schema_copies
