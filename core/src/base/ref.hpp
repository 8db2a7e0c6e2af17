// SPDX-License-Identifier: Apache-2.0
// Intrusive reference counts: an object with `std::atomic<uint32_t> refs` and a `static void destroy(T*)`. For a type
// that is only declared, functions `ref_count(T*)` and `destroy(T*)` beside the declaration do it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace perigee {

template <class T>
std::atomic<uint32_t>& ref_count(T* object) {
  return object->refs;
}
template <class T>
void destroy(T* object) {
  T::destroy(object);
}

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Takes over the caller's reference.
  static Ref adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Adds a reference of its own.
  static Ref share(T* object) {
    if (object != nullptr) ref_count(object).fetch_add(1, std::memory_order_relaxed);
    return adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) ref_count(object_).fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { drop(object_); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* release() { return std::exchange(object_, nullptr); }

  static void drop(T* object) {
    if (object == nullptr) return;
    if constexpr (requires { T::interned; }) {  // its table may hand out references at any time, and owns it
      ref_count(object).fetch_sub(1, std::memory_order_acq_rel);
      return;
    }
    // A sole owner needs no locked instruction: nobody else can gain a reference meanwhile.
    std::atomic<uint32_t>& refs = ref_count(object);
    if (refs.load(std::memory_order_acquire) == 1 || refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(object);
  }

 private:
  T* object_ = nullptr;
};

}  // namespace perigee
