// The one translation unit that holds Asio's bodies: each other file then compiles in half the
// time.
#include <boost/asio/impl/src.hpp>
