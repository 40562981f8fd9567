// The translation unit that compiles Asio's function bodies (separate compilation), which halves
// the compile time of every other file. Its reactor waits for events in one place: there a turn of
// the event loop ends, and the next one begins.
#include <sys/epoll.h>

#include "net/loop_turns.hpp"

#define epoll_wait ddprun::net::epoll_wait_between_turns
#include <boost/asio/impl/src.hpp>
#undef epoll_wait
