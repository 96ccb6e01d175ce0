#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety analysis (preset clang); nothing for other compilers.
#if defined(__clang__)
#define MILLRACE_TSA(x) __attribute__((x))
#else
#define MILLRACE_TSA(x)
#endif
#define GUARDED_BY(x) MILLRACE_TSA(guarded_by(x))
#define REQUIRES(...) MILLRACE_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) MILLRACE_TSA(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) MILLRACE_TSA(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) MILLRACE_TSA(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) MILLRACE_TSA(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS MILLRACE_TSA(no_thread_safety_analysis)

namespace millrace {

/// std::mutex with the annotations that let clang check GUARDED_BY.
class MILLRACE_TSA(capability("mutex")) Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class MILLRACE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable over Mutex. The caller holds the mutex; waits may wake spuriously.
class CondVar {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  /// False when the time ran out.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds timeout) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    bool notified = cv_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace millrace
