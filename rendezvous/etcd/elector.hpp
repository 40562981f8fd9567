// Elector: the shell around Election. Asks etcd, keeps the time, and says who coordinates. Thread
// rule: the io_context's thread. The user outlives it, and is never called from inside start().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "rendezvous/etcd/client.hpp"
#include "rendezvous/etcd/election.hpp"

namespace ddprun::etcd {

class ElectorUser {
 public:
  /// Where this process would coordinate: peers that connect there from now on wait. An error
  /// counts as a failed campaign.
  [[nodiscard]] virtual Result<Leader> offer(const std::string& own_address) = 0;
  /// Another process was elected, and nothing came of the offer.
  virtual void withdraw() = 0;
  /// This process coordinates at what it offered, as long as may_act() holds. Terms only grow.
  virtual void lead(Revision term, const RunRecord& record) = 0;
  /// etcd has this record, which set_record() gave.
  virtual void recorded(const RunRecord& record) = 0;
  /// may_act() holds again.
  virtual void act() = 0;
  virtual void step_down() = 0;
  /// Where the coordinator is; none: not known, or this process was it.
  virtual void follow(const std::optional<Leader>& leader) = 0;
  /// etcd can be reached, and does not answer.
  virtual void await_etcd() = 0;
  virtual void note(const std::string& text) = 0;
  /// No process coordinates the run, and this one may not (ElectionOptions::bars).
  virtual void bar(const std::string& why) = 0;
  /// etcd refuses this user. Nothing follows.
  virtual void refuse(const std::string& why) = 0;

 protected:
  ~ElectorUser() = default;
};

struct ElectorOptions {
  ClientOptions client;
  ElectionOptions election;
  Keys keys;
};

class Elector {
 public:
  Elector(boost::asio::any_io_executor executor, ElectorOptions options, ElectorUser& user);
  ~Elector();
  Elector(const Elector&) = delete;
  Elector& operator=(const Elector&) = delete;

  void start();
  /// What is to survive every coordinator; written while this process leads.
  void set_record(const RunRecord& record);
  /// Whether no other process can lead now.
  [[nodiscard]] bool may_act() const;
  /// Leads no more, and lets the others know at once. Completes when etcd has the record and the
  /// resignation, or after kResignMax.
  [[nodiscard]] boost::asio::awaitable<void> resign();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

inline constexpr Duration kResignMax = std::chrono::seconds(2);

}  // namespace ddprun::etcd
