// Integers of 1 to 64 bits with the semantics of Vitis's ap_int and ap_uint where designs of braid
// use them: assignment keeps the low bits, operators are exact in 128 bits.
#pragma once

#include <stdint.h>

template <int W, bool S> struct ap_number {
  static_assert(W >= 1 && W <= 64, "1 to 64 bits");
  int64_t value;

  ap_number() : value(0) {}
  ap_number(__int128 given) { set(given); }
  template <int V, bool T> ap_number(const ap_number<V, T> &given) { set(given.wide()); }

  void set(__int128 given) {
    const uint64_t low = (uint64_t)given << (64 - W);
    value = S ? (int64_t)low >> (64 - W) : (int64_t)(low >> (64 - W));
  }
  __int128 wide() const { return S ? (__int128)value : (__int128)(uint64_t)value; }
  operator __int128() const { return wide(); }
};

template <int W> using ap_int = ap_number<W, true>;
template <int W> using ap_uint = ap_number<W, false>;
