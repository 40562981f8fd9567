// The waits of this process in collectives of Gloo. When a connection ends in the middle of a
// message, Gloo (of torch 2.15) tells those who wait for its other messages, and leaves the one who
// waits for this one to its time-out, which is half an hour. So the library takes the place of
// Gloo's two waiting functions in their table of virtual functions, knows who waits, and has Gloo
// fail them. Where Gloo or its symbols are not found, nothing happens. Thread rule: any thread.
#pragma once

namespace ddprun::worker_link {

/// As soon as torch is loaded; once.
void follow_waits();
/// Those who wait, and who will until allow_waits(), get a RuntimeError.
void fail_waits();
void allow_waits();

}  // namespace ddprun::worker_link
