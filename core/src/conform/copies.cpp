// SPDX-License-Identifier: Apache-2.0
// Copies and fills as plugin.h promises them. Every dtype with every other is asked through tensors.
#include <cmath>

#include "conform/probe.hpp"

namespace perigee::conform {
namespace {

void offsets_count(Probe& p) {
  const uint64_t stream = p.stream(), buffer = p.alloc(10);
  const unsigned char bytes[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  unsigned char got[4] = {};
  p.upload(buffer, bytes, 10, stream);
  p.upload(buffer, bytes, 2, stream, 3);
  p.sync(stream);
  p.download(got, buffer, 4, stream, 2);
  p.sync(stream);
  need(got[0] == 2 && got[1] == 0 && got[2] == 1 && got[3] == 5,
       pg::format("bytes 2, 0, 1, 5 come back as %d, %d, %d, %d", got[0], got[1], got[2], got[3]));
}

void nothing_is_nothing(Probe& p) {
  const uint64_t stream = p.stream(), buffer = p.alloc(8);
  const unsigned char before[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  unsigned char after[8] = {};
  p.upload(buffer, before, 8, stream);
  p.upload(buffer, before, 0, stream);
  p.download(after, buffer, 0, stream);
  View none(PG_F32, {0, 3}, {3, 1}, buffer), other(PG_I64, {0, 3}, {1, 7}, 0);
  p.copy(none, other, stream);
  p.fill(none, pg::make_number(9.0), stream);
  p.download(after, buffer, 8, stream);
  p.sync(stream);
  need(std::memcmp(before, after, 8) == 0, "an empty copy or fill has written something");
}

void large_copies_arrive(Probe& p) {
  const uint64_t stream = p.stream(), size = (5 << 20) + 3, buffer = p.alloc(size);
  std::vector<unsigned char> bytes(size), got(size);
  for (size_t i = 0; i < size; i++) bytes[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  p.upload(buffer, bytes.data(), size, stream);
  p.download(got.data(), buffer, size, stream);
  p.sync(stream);
  for (size_t i = 0; i < size; i++) need(got[i] == bytes[i], pg::format("byte %zu of %zu differs", i, size_t{size}));
}

std::vector<float> floats_of(Probe& p, uint64_t buffer, size_t count, uint64_t stream) {
  std::vector<float> got(count);
  p.download(got.data(), buffer, count * 4, stream);
  p.sync(stream);
  return got;
}

constexpr size_t kGapped = 40;  // floats, of which a target with gaps has six
uint64_t gapped_target(Probe& p, uint64_t stream) {
  const uint64_t to = p.alloc(kGapped * 4);
  const std::vector<float> untouched(kGapped, -1.0f);
  p.upload(to, untouched.data(), kGapped * 4, stream);
  p.sync(stream);  // it may be read as late as then
  return to;
}
bool is_of_target(size_t i) { return i >= 4 && (i - 4) % 10 % 2 == 0 && (i - 4) % 10 <= 2 && (i - 4) / 10 < 3; }

// [3, 2] with gaps, transposed, four elements into its buffer.
void copies_follow_strides(Probe& p) {
  const uint64_t stream = p.stream(), from = p.alloc(6 * 4), to = gapped_target(p, stream);
  const float source[6] = {1, 2, 3, 4, 5, 6};
  p.upload(from, source, sizeof source, stream);
  View x(PG_F32, {3, 2}, {1, 3}, from), y(PG_F32, {3, 2}, {10, 2}, to, 16);
  p.copy(y, x, stream);
  const std::vector<float> got = floats_of(p, to, kGapped, stream);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 2; j++) {
      const float v = got[static_cast<size_t>(4 + 10 * i + 2 * j)], wanted = source[i + 3 * j];
      need(v == wanted, pg::format("element [%d, %d] is %g, expected %g", i, j, v, wanted));
    }
}

void copies_leave_gaps(Probe& p) {
  const uint64_t stream = p.stream(), from = p.alloc(6 * 4), to = gapped_target(p, stream);
  const float source[6] = {1, 2, 3, 4, 5, 6};
  p.upload(from, source, sizeof source, stream);
  View x(PG_F32, {3, 2}, {2, 1}, from), y(PG_F32, {3, 2}, {10, 2}, to, 16);
  p.copy(y, x, stream);
  const std::vector<float> got = floats_of(p, to, kGapped, stream);
  for (size_t i = 0; i < kGapped; i++)
    need(is_of_target(i) || got[i] == -1.0f, pg::format("element %zu, which is none of the target's, is written", i));
}

void fills_follow_strides(Probe& p) {
  const uint64_t stream = p.stream(), to = gapped_target(p, stream);
  p.fill(View(PG_F32, {3, 2}, {10, 2}, to, 16), pg::make_number(5.0), stream);
  const std::vector<float> got = floats_of(p, to, kGapped, stream);
  for (size_t i = 0; i < kGapped; i++)
    need(got[i] == (is_of_target(i) ? 5.0f : -1.0f), pg::format("element %zu is %g", i, got[i]));
}

void fills_keep_integers(Probe& p) {
  const uint64_t stream = p.stream(), to = p.alloc(8 * 4);
  const int64_t value = (int64_t{1} << 53) + 1;
  int64_t got[4] = {};
  p.fill(View(PG_I64, {4}, {1}, to), pg::make_number(value), stream);
  p.download(got, to, 32, stream);
  p.sync(stream);
  for (int64_t v : got) need(v == value, pg::format("2^53 + 1 becomes %lld", static_cast<long long>(v)));
}

void fills_convert(Probe& p) {
  const uint64_t stream = p.stream(), to = p.alloc(64);
  unsigned char truth[4] = {};
  int32_t whole[4] = {};
  p.fill(View(PG_B8, {4}, {1}, to), pg::make_number(0.5), stream);
  p.download(truth, to, 4, stream);
  p.sync(stream);
  need(truth[3] == 1, pg::format("0.5 as a boolean becomes %d", truth[3]));
  p.fill(View(PG_I32, {4}, {1}, to), pg::make_number(-2.75), stream);
  p.download(whole, to, 16, stream);
  p.sync(stream);
  need(whole[3] == -2, pg::format("-2.75 as an integer becomes %d", whole[3]));
}

void copies_broadcast(Probe& p) {
  const uint64_t stream = p.stream(), from = p.alloc(8), to = p.alloc(24);
  const float source[2] = {3, 4};
  p.upload(from, source, 8, stream);
  p.copy(View(PG_F32, {3, 2}, {2, 1}, to), View(PG_F32, {3, 2}, {0, 1}, from), stream);
  const std::vector<float> got = floats_of(p, to, 6, stream);
  for (size_t i = 0; i < 6; i++) need(got[i] == source[i % 2], pg::format("element %zu is %g", i, got[i]));
}

void copies_convert(Probe& p) {
  const uint64_t stream = p.stream(), from = p.alloc(20), to = p.alloc(20);
  const float source[5] = {-1.75f, 2.75f, 0.25f, 0, NAN};
  unsigned char truth[5] = {};
  int32_t whole[5] = {};
  p.upload(from, source, 20, stream);
  p.copy(View(PG_I32, {4}, {1}, to), View(PG_F32, {4}, {1}, from), stream);
  p.download(whole, to, 16, stream);
  p.sync(stream);
  need(whole[0] == -1 && whole[1] == 2 && whole[2] == 0,
       pg::format("-1.75, 2.75, 0.25 become %d, %d, %d, not -1, 2, 0", whole[0], whole[1], whole[2]));
  p.copy(View(PG_B8, {5}, {1}, to), View(PG_F32, {5}, {1}, from), stream);
  p.download(truth, to, 5, stream);
  p.sync(stream);
  need(truth[0] == 1 && truth[2] == 1 && truth[3] == 0 && truth[4] == 1,
       "to a boolean: what is not equal to zero is true, NaN too");
}

void scalars_are_tensors(Probe& p) {
  const uint64_t stream = p.stream(), from = p.alloc(8), to = p.alloc(8);
  p.fill(View(PG_F64, {}, {}, from), pg::make_number(2.5), stream);
  p.copy(View(PG_F32, {}, {}, to, 4), View(PG_F64, {}, {}, from), stream);
  need(floats_of(p, to, 2, stream)[1] == 2.5f, "a tensor without axes is not copied");
}

void peers_exchange(Probe& p) {
  if (p.device.synchronous) return;
  const uint64_t stream = p.stream(), from = p.alloc(16), to = p.alloc(16);
  const float source[4] = {1, 2, 3, 4}, before[4] = {9, 9, 9, 9};
  p.upload(from, source, 16, stream);
  p.upload(to, before, 16, stream);
  pg_error error = pg::make_error();
  const int32_t code = p.t.peer(p.self, p.n, to, 4, p.n, from, 8, 8, stream, p.number(), &error);
  if (code == PG_E_UNIMPLEMENTED) return;
  need(code == PG_OK, "peer fails: " + pg::message_of(code, error));
  const std::vector<float> got = floats_of(p, to, 4, stream);
  need(got == std::vector<float>{9, 3, 4, 9},
       pg::format("9, 3, 4, 9 come as %g, %g, %g, %g", got[0], got[1], got[2], got[3]));
}

}  // namespace

std::vector<Check> copy_checks() {
  return {{"copies", "uploads and downloads take offsets", offsets_count},
          {"copies", "nothing is copied of nothing", nothing_is_nothing},
          {"copies", "large copies arrive whole", large_copies_arrive},
          {"copies", "a copy follows strides and offsets", copies_follow_strides},
          {"copies", "a copy leaves what lies between its elements", copies_leave_gaps},
          {"copies", "a fill writes its elements alone", fills_follow_strides},
          {"copies", "a fill keeps integers whole", fills_keep_integers},
          {"copies", "a fill converts", fills_convert},
          {"copies", "a copy repeats a source of stride 0", copies_broadcast},
          {"copies", "a copy converts", copies_convert},
          {"copies", "tensors without axes", scalars_are_tensors},
          {"copies", "peers exchange bytes at offsets", peers_exchange}};
}

}  // namespace perigee::conform
