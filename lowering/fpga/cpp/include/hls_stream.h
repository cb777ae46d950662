// Streams as Vitis's hls::stream in C simulation: unbounded, and a read of nothing ends the
// program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <deque>

namespace hls {

template <typename T> class stream {
public:
  stream(const char *name = "stream") : name(name) {}
  T read() {
    if (queue.empty()) {
      fprintf(stderr, "read of the empty stream %s\n", name);
      abort();
    }
    const T first = queue.front();
    queue.pop_front();
    return first;
  }
  void write(const T &value) { queue.push_back(value); }
  bool empty() const { return queue.empty(); }
  unsigned size() const { return queue.size(); }

private:
  const char *name;
  std::deque<T> queue;
};

} // namespace hls
