// The one translation unit that holds the bodies of Boost.Process v2: 1.81 does not link
// header-only, and its headers use throw_error without including it.
#include <boost/asio/detail/throw_error.hpp>
#include <boost/process/v2/src.hpp>
