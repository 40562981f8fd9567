// Terminal: the launcher's own terminal, and the pseudoterminals that stand for it. What a worker
// writes to one of these is text for a terminal, as it is without ddprun, and still passes through
// here.
//
// Programs choose colours and progress bars by what they write to, so a pseudoterminal has the size
// and the modes of the user's terminal, except OPOST: that terminal translates newlines already. It
// is no process's controlling terminal, so that its end sends no SIGHUP. It is write-only: keys
// come from the inherited stdin, and a read here would wait forever. It buffers about 20 KB, a pipe
// 64.
//
// Thread rule: the io_context's thread. Ownership: the terminal's descriptor stays the caller's and
// must outlive it; those of a pseudoterminal become the caller's.
#pragma once

#include <map>
#include <optional>

namespace ddprun {

class Terminal {
 public:
  explicit Terminal(int descriptor) : descriptor_(descriptor) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Pseudoterminal {
    int ours = -1;     // O_NONBLOCK
    int workers = -1;  // blocking, for writing
  };
  /// One with the size and modes of the terminal, but that passes all bytes on unchanged: the
  /// terminal translates them once. No process gets it as its controlling terminal. Both ends are
  /// CLOEXEC. `label`: so many columns are taken by what stands before each line. None, with errno,
  /// where the system gives none: no devpts, a sandbox, too many.
  [[nodiscard]] std::optional<Pseudoterminal> open_pseudoterminal(int label = 0);
  /// `ours` is about to be closed.
  void forget(int ours) { ours_.erase(ours); }
  /// The terminal's size may have changed: all pseudoterminals get it.
  void resize() const;
  /// Of its window; 0: unknown.
  [[nodiscard]] int columns() const;

 private:
  void set_modes(int workers) const;

  int descriptor_;
  std::map<int, int> ours_;  // with the columns of the label
};

}  // namespace ddprun
