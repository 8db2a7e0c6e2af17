// SPDX-License-Identifier: Apache-2.0
// Memory of small objects that come and go by the thousand: a collector frees them in bulk, which general allocators
// answer by merging and splitting. Each thread keeps what it freed in a list, up to a bound and to as many as it has
// made: a script that frees what threads of pipelines make would keep them without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace perigee {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t most_recycled = 0;  // a sanitizer must see every object come and go
#else
constexpr int64_t most_recycled = 1 << 16;
#endif

// Base of classes whose objects are recycled. Derived classes of other sizes than T itself are not.
template <class T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    List& l = list;
    if (bytes != sizeof(T)) return ::operator new(bytes);
    if (l.first == nullptr) {
      if (l.room < most_recycled) l.room++;
      return ::operator new(bytes);
    }
    Link* link = l.first;
    l.first = link->next;
    l.room++;
    return link;
  }
  static void operator delete(void* memory, size_t bytes) {
    List& l = list;
    if (bytes != sizeof(T) || l.room <= 0) {
      ::operator delete(memory);
      return;
    }
    if (l.first == nullptr) owner.touch();  // the thread's end gives back what is left
    l.first = new (memory) Link{l.first};
    l.room--;
  }

 private:
  struct Link {
    Link* next;
  };
  struct List {
    Link* first = nullptr;
    int64_t room = 0;  // how many more it takes
  };
  struct Owner {
    void touch() {}
    ~Owner() {
      while (list.first != nullptr) ::operator delete(std::exchange(list.first, list.first->next));
      list.room = INT64_MIN / 2;  // what still dies later on this thread is freed at once
    }
  };
  static inline constinit thread_local List list __attribute__((tls_model("initial-exec"))){};
  static inline thread_local Owner owner;
};

}  // namespace perigee
