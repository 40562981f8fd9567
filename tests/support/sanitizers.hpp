// Whether a sanitizer is in this build: it keeps what is freed, and needs far more memory than the
// program, so tests of the memory of a process run without.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DDPRUN_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DDPRUN_TEST_SANITIZED 1
#endif
#endif
#if !defined(DDPRUN_TEST_SANITIZED)
#define DDPRUN_TEST_SANITIZED 0
#endif
