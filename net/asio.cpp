// The translation unit that compiles Asio's function bodies (separate compilation), which halves
// the compile time of every other file.
#include <boost/asio/impl/src.hpp>
