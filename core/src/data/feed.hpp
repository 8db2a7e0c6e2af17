// SPDX-License-Identifier: Apache-2.0
// Elements that only the front end's thread can make. Threads of a run ask for them here; that thread answers when it
// comes for the run's next element.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "data/stage.hpp"

namespace perigee {

class Feeds {
 public:
  struct Request {
    uint32_t source;  // the front end's number of what makes the elements
    uint32_t time;    // how often that had been begun before
    int64_t position;
    auto operator<=>(const Request&) const = default;
  };

  // The front end's side. Elements of a source may be answered before they are asked for; one without a layout says
  // that there are only `position` elements or fewer.
  bool next(Request& out);  // false: nobody waits for anything
  bool waiting();
  void answer(const Request& request, Element element);
  void fail(const Request& request, std::string message);
  void flush();  // who waits sees all answers, of which the last few may not have been told

  // The threads' side.
  Element get(const Request& request);  // waits; throws what failed
  void want(const Request& request);
  uint32_t begin_again(uint32_t source);  // the number of another time
  void cancel();                          // nobody will answer any more: get throws

  std::function<void()> asked;  // after a request, on any thread; set before the first one

 private:
  struct Answer {
    std::optional<Element> element;
    std::string failure;
    bool failed = false;
    uint32_t users = 0;  // threads that wait for it
  };
  bool ask(const Request& request);
  void tell();
  std::mutex mutex_;
  std::condition_variable answered_;
  std::deque<Request> requests_;
  std::map<Request, Answer> answers_;  // also of what was asked for and is not yet answered
  std::map<uint32_t, uint32_t> times_;
  bool cancelled_ = false;
  int untold_ = 0;
  int64_t told_ns_ = 0;
};

// count: kUnknown where only the source knows its end. in_order: the source makes its elements one after the other.
StageRef feed_stage(std::shared_ptr<Feeds> feeds, uint32_t source, int64_t count, bool in_order);

}  // namespace perigee
