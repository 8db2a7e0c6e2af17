// SPDX-License-Identifier: Apache-2.0
#include "order.hpp"

#include <algorithm>
#include <cinttypes>

#include "memory.hpp"

namespace sim {
namespace {

void join(Clock& into, const Clock& from) {
  for (auto [stream, tasks] : from) into[stream] = std::max(into[stream], tasks);
}

uint64_t digest_of(const Touch& touch) {
  uint64_t digest = 0xcbf29ce484222325ull;
  for (uint64_t i = touch.begin; i < touch.end; i++)
    digest = (digest ^ static_cast<uint8_t>(touch.of->data[i])) * 0x100000001b3ull;
  return digest;
}

// A span that begins at `at` wherever one goes across it.
void split(Spans& spans, uint64_t at) {
  auto next = spans.upper_bound(at);
  if (next == spans.begin()) return;
  auto span = std::prev(next);
  if (span->first == at || span->second.end <= at) return;
  Span rest = span->second;
  span->second.end = at;
  spans.emplace_hint(next, at, std::move(rest));
}

}  // namespace

bool Order::over(const Past& task, const Clock& clock) const {
  auto found = clock.find(task.stream);
  return task.stream == 0 || (found != clock.end() && found->second >= task.task);
}

std::string Order::name(const Past& task) const {
  auto device = devices_.find(task.stream);
  return pg::format("%s (number %" PRIu64 ") on stream %" PRIu64 " of sim:%u", task.what, task.sequence, task.stream,
                    device == devices_.end() ? 0 : device->second);
}

void Order::add_stream(uint64_t stream, uint32_t device) {
  if (!on_) return;
  std::lock_guard lock(mutex_);
  devices_[stream] = device;
  clocks_[stream];
}

void Order::submit(uint64_t stream, const char* what, uint64_t sequence, const std::vector<Touch>& touches) {
  if (!on_) return;
  std::lock_guard lock(mutex_);
  Clock& clock = clocks_[stream];
  join(clock, host_);
  const Past task{stream, ++clock[stream], sequence, what};
  for (const Touch& each : touches) touch(task, clock, each);
}

void Order::touch(const Past& task, const Clock& before, const Touch& touch) {
  if (touch.begin >= touch.end) return;
  Spans& spans = touch.of->spans;
  split(spans, touch.begin);
  split(spans, touch.end);
  auto check = [&](const Past& other, bool wrote) {
    if (over(other, before)) return;
    pg::fail(PG_E_FAILED_PRECONDITION,
             pg::format("race: %s %s bytes %" PRIu64 "..%" PRIu64 " of buffer %" PRIu64 ", which %s %s; nothing makes "
                        "it wait for that",
                        name(task).c_str(), touch.writes ? "writes" : "reads", touch.begin, touch.end, touch.of->number,
                        name(other).c_str(), wrote ? "writes" : "reads"));
  };
  const auto first = spans.lower_bound(touch.begin), last = spans.lower_bound(touch.end);
  for (auto span = first; span != last; ++span) {
    check(span->second.write, true);
    if (!touch.writes) continue;
    for (const Past& read : span->second.reads) check(read, false);
  }
  if (touch.writes) {
    spans.erase(first, last);
    spans[touch.begin] = {touch.end, task, {}};
    return;
  }
  uint64_t at = touch.begin;
  for (auto span = first; span != last; ++span) {
    if (at < span->first) spans.emplace_hint(span, at, Span{span->first, {}, {task}});
    at = span->second.end;
    auto& reads = span->second.reads;
    std::erase_if(reads, [&](const Past& read) { return over(read, before); });  // who follows this follows those
    reads.push_back(task);
  }
  if (at < touch.end) spans.emplace(at, Span{touch.end, {}, {task}});
}

void Order::watch(uint64_t stream, uint64_t sequence, const Touch& source) {
  if (!on_ || source.of == nullptr) return;
  std::lock_guard lock(mutex_);
  sources_.push_back({{stream, clocks_[stream][stream], sequence, "upload"}, source, digest_of(source)});
}

Snapshot Order::record(uint64_t stream) {
  if (!on_) return nullptr;
  std::lock_guard lock(mutex_);
  return std::make_shared<const Clock>(clocks_[stream]);
}

void Order::wait(uint64_t stream, const Snapshot& event) {
  if (!on_ || event == nullptr) return;
  std::lock_guard lock(mutex_);
  join(clocks_[stream], *event);
}

bool Order::known_on_host(const Snapshot& event) {
  if (!on_ || event == nullptr) return true;
  std::lock_guard lock(mutex_);
  return std::all_of(event->begin(), event->end(), [&](const auto& entry) {
    auto found = host_.find(entry.first);
    return entry.second == 0 || (found != host_.end() && found->second >= entry.second);
  });
}

void Order::wait_on_host(const Snapshot& event) {
  if (!on_ || event == nullptr) return;
  std::lock_guard lock(mutex_);
  join(host_, *event);
  std::string changed;
  std::erase_if(sources_, [&](const Source& source) {
    if (!over(source.task, host_)) return false;
    if (changed.empty() && digest_of(source.bytes) != source.digest) changed = name(source.task);
    return true;
  });
  if (!changed.empty()) {
    pg::fail(PG_E_FAILED_PRECONDITION,
             "race: the host changed what " + changed + " reads, before it had waited for that");
  }
}

void Order::check_free(Allocation& allocation) {
  if (!on_) return;
  std::lock_guard lock(mutex_);
  auto check = [&](const Past& task) {
    if (over(task, host_)) return;
    pg::fail(PG_E_FAILED_PRECONDITION,
             "free: " + name(task) + " touches the buffer, and the host has not waited for that");
  };
  for (const auto& [begin, span] : allocation.spans) {
    check(span.write);
    for (const Past& read : span.reads) check(read);
  }
  std::erase_if(sources_, [&](const Source& source) { return source.bytes.of.get() == &allocation; });
}

}  // namespace sim
