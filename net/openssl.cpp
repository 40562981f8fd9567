#include "net/openssl.hpp"

#include <dlfcn.h>

#include <string>

namespace ddprun::net {

namespace {

// The interface of the headers that this was compiled with: libssl.so.3 of every OpenSSL 3.
const std::string kVersion = std::to_string(OPENSSL_SHLIB_VERSION);

Error missing() {
  const char* const why = ::dlerror();
  return {ErrorKind::kSystem, "TLS needs OpenSSL, which cannot be loaded (" +
                                  std::string(why == nullptr ? "unknown" : why) +
                                  "); install libssl.so." + kVersion + ", Debian's package libssl" +
                                  kVersion};
}

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

Result<OpenSsl> load() {
  void* const crypto = ::dlopen(("libcrypto.so." + kVersion).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (crypto == nullptr) return missing();
  void* const ssl = ::dlopen(("libssl.so." + kVersion).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (ssl == nullptr) return missing();
  OpenSsl all;
#define DDPRUN_FIND_CRYPTO(name) \
  if (!find(crypto, #name, all.name)) return missing();
#define DDPRUN_FIND_SSL(name) \
  if (!find(ssl, #name, all.name)) return missing();
  DDPRUN_LIBCRYPTO(DDPRUN_FIND_CRYPTO)
  DDPRUN_LIBSSL(DDPRUN_FIND_SSL)
#undef DDPRUN_FIND_CRYPTO
#undef DDPRUN_FIND_SSL
  // A configuration file could weaken the sessions, or load other code.
  if (all.OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) {
    return Error(ErrorKind::kSystem, "OpenSSL cannot be used: its initialization failed");
  }
  return all;
}

}  // namespace

const Result<OpenSsl>& openssl() {
  static const Result<OpenSsl> loaded = load();
  return loaded;
}

}  // namespace ddprun::net
