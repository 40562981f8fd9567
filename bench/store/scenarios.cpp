#include "bench/store/scenarios.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "bench/store/swarm.hpp"
#include "tests/store/requests.hpp"

namespace ddprun::store::bench {

using namespace requests;

namespace {

constexpr std::size_t kInFlight = 1024;
constexpr std::uint32_t kNonce = 4242;
const std::string kHello = validate() + ping(kNonce);
const std::string kPong = u32(kNonce);
const std::string kWoken(1, '\0');

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Measures wall and CPU time from construction to done().
class Stretch {
 public:
  explicit Stretch(const Target& target) : target_(target), cpu_s_(cpu()), wall_s_(now_s()) {}
  Measurement done(std::size_t requests) const {
    Measurement result;
    result.wall_s = now_s() - wall_s_;
    result.cpu_s = cpu() - cpu_s_;
    result.requests = requests;
    return result;
  }

 private:
  double cpu() const { return target_.server_cpu_s ? target_.server_cpu_s() : 0; }
  const Target& target_;
  double cpu_s_;
  double wall_s_;
};

void quantiles(std::vector<float>& latencies_s, Measurement& result) {
  if (latencies_s.empty()) return;
  std::sort(latencies_s.begin(), latencies_s.end());
  result.p50_us = 1e6 * static_cast<double>(latencies_s[latencies_s.size() / 2]);
  result.p99_us = 1e6 * static_cast<double>(latencies_s[latencies_s.size() * 99 / 100]);
}

bool starts_with(std::string_view reply, std::string_view expected) {
  return reply.substr(0, expected.size()) == expected;
}

/// A script of fixed exchanges, the same for all connections.
Script all_say(const std::vector<std::pair<std::string, std::string>>& exchanges) {
  return {[&exchanges](std::size_t, std::size_t at, Step& step) {
            if (at == exchanges.size()) return false;
            step = {exchanges[at].first, exchanges[at].second.size()};
            return true;
          },
          [&exchanges](std::size_t, std::size_t at, std::string_view reply) {
            return starts_with(reply, exchanges[at].second);
          }};
}

const std::vector<std::pair<std::string, std::string>> kIntroduction{{kHello, kPong}};

void connect_all(Swarm& swarm, std::size_t count) {
  const Script hello = all_say(kIntroduction);
  swarm.connect_and_run(count, kInFlight, hello);
}

struct Verb {
  std::string request;
  std::string reply;  // its first bytes
  std::size_t reply_bytes;
};

Verb verb_of(const std::string& name, const std::string& key) {
  const std::string value(16, 'v');
  if (name == "ping") return {ping(kNonce), kPong, 4};
  if (name == "get") return {get(key), text(value), 24};
  if (name == "add") return {add(key + "n", 1), "", 8};
  if (name == "set") return {set(key, value) + ping(kNonce), kPong, 4};
  if (name == "check") return {check({key}), kWoken, 1};
  if (name == "wait") return {wait({key}), kWoken, 1};
  throw std::runtime_error("unknown command: " + name);
}

Measurement repeat(const Target& target, const std::string& name, std::size_t connections,
                   const std::function<bool(std::size_t at)>& more) {
  Swarm swarm(target.host, target.port);
  connect_all(swarm, connections);
  const std::vector<std::pair<std::string, std::string>> prepare{
      {set(target.tag, std::string(16, 'v')) + ping(kNonce), kPong}};
  const Script preparation = all_say(prepare);
  swarm.run(0, 1, preparation);
  const Verb verb = verb_of(name, target.tag);
  const Script script{[&](std::size_t, std::size_t at, Step& step) {
                        step = {verb.request, verb.reply_bytes};
                        return more(at);
                      },
                      [&](std::size_t, std::size_t, std::string_view reply) {
                        return reply.size() == verb.reply_bytes && starts_with(reply, verb.reply);
                      }};
  std::vector<float> latencies_s;
  swarm.record(&latencies_s);
  const Stretch stretch(target);
  swarm.run(0, connections, script);
  Measurement result = stretch.done(latencies_s.size());
  quantiles(latencies_s, result);
  if (name == "add") {
    swarm.record(nullptr);
    const std::vector<std::pair<std::string, std::string>> audit{
        {add(target.tag + "n", 0), i64(static_cast<std::int64_t>(result.requests))}};
    const Script auditing = all_say(audit);
    swarm.run(0, 1, auditing);
  }
  return result;
}

/// The end of every start-up: all ADD, the last one SETs, all WAIT. Two steps.
class Gate {
 public:
  Gate(std::size_t members, const std::string& tag)
      : last_(i64(static_cast<std::int64_t>(members))),
        arrive_(add(tag + "/count", 1)),
        wait_(wait({tag + "/last"})),
        open_(set(tag + "/last", "1") + wait_) {}
  bool next(std::size_t connection, std::size_t at, Step& step) const {
    if (at == 0) step = {arrive_, 8};
    if (at == 1) step = {connection == opener_ ? open_ : wait_, 1};
    return at < 2;
  }
  bool check(std::size_t connection, std::size_t at, std::string_view reply) {
    if (at == 1) return reply == kWoken;
    if (reply == last_) opener_ = connection;
    return reply.size() == 8;
  }
  [[nodiscard]] bool opened() const { return opener_ != kNobody; }

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};
  std::string last_, arrive_, wait_, open_;
  std::size_t opener_ = kNobody;
};

}  // namespace

Measurement in_sequence(const Target& target, const std::string& verb, std::size_t requests) {
  return repeat(target, verb, 1, [=](std::size_t at) { return at < requests; });
}

Measurement closed_loop(const Target& target, const std::string& verb, std::size_t connections,
                        double seconds) {
  const double until = now_s() + seconds;
  return repeat(target, verb, connections,
                [=](std::size_t at) { return at == 0 || now_s() < until; });
}

Measurement accept(const Target& target, std::size_t connections) {
  Swarm swarm(target.host, target.port);
  const Stretch stretch(target);
  connect_all(swarm, connections);
  return stretch.done(connections);
}

Measurement barrier(const Target& target, std::size_t connections) {
  Swarm swarm(target.host, target.port);
  connect_all(swarm, connections);
  Gate gate(connections, target.tag);
  const Script script{[&](std::size_t connection, std::size_t at, Step& step) {
                        return gate.next(connection, at, step);
                      },
                      [&](std::size_t connection, std::size_t at, std::string_view reply) {
                        return gate.check(connection, at, reply);
                      }};
  const Stretch stretch(target);
  swarm.run(0, connections, script);
  if (!gate.opened()) throw std::runtime_error("no connection was the last in the barrier");
  return stretch.done(2 * connections);
}

namespace {

/// Connect, register, exchange the id; with `mesh`, every rank then GETs every rank's address
/// block.
Measurement start_up(const Target& target, std::size_t ranks, std::size_t mesh) {
  const std::string id(128, 'i');
  const std::string block(8 * ranks + 154, 'b');
  const std::string id_key = target.tag + "/default_pg/0//cuda//0";
  const std::string announce = add(target.tag + "init/", 1);
  const std::string give = set(id_key, id) + wait({id_key});
  const std::string want = wait({id_key});
  const std::string fetch = get(id_key);
  std::vector<std::string> publish(mesh), await(mesh), look(mesh);
  for (std::size_t rank = 0; rank < mesh; ++rank) {
    const std::string key = target.tag + "/default_pg/0//cpu//0/" + std::to_string(rank);
    await[rank] = wait({key});
    look[rank] = get(key);
    publish[rank] = set(key, block) + wait({target.tag + "/default_pg/0//cpu//0/0"});
  }
  constexpr std::size_t kBefore = 4;
  const std::size_t before_gate = kBefore + 3 * mesh;
  Gate gate(ranks, target.tag);
  const Script script{[&](std::size_t connection, std::size_t at, Step& step) {
                        if (at >= before_gate) return gate.next(connection, at - before_gate, step);
                        if (at == 0) step = {kHello, 4};
                        if (at == 1) step = {announce, 8};
                        if (at == 2) step = {connection == 0 ? give : want, 1};
                        if (at == 3) step = {fetch, 8 + id.size()};
                        if (at < kBefore) return true;
                        const std::size_t rank = (at - kBefore) / 3;
                        const std::size_t part = (at - kBefore) % 3;
                        const std::string& first =
                            rank == 0 && part == 0 ? publish[connection] : await[rank];
                        step = part == 2 ? Step{look[rank], 8 + block.size()} : Step{first, 1};
                        return true;
                      },
                      [&](std::size_t connection, std::size_t at, std::string_view reply) {
                        if (at >= before_gate)
                          return gate.check(connection, at - before_gate, reply);
                        if (at < 2) return at == 1 || reply == kPong;
                        if (at == 3) return starts_with(reply, text(id).substr(0, 64));
                        if (at == 2 || (at - kBefore) % 3 < 2) return reply == kWoken;
                        return starts_with(reply, text(block).substr(0, 64));
                      }};
  Swarm swarm(target.host, target.port);
  const Stretch stretch(target);
  swarm.connect_and_run(ranks, ranks, script);
  return stretch.done(ranks * (before_gate + 2));
}

}  // namespace

Measurement nccl_start(const Target& target, std::size_t ranks) {
  return start_up(target, ranks, 0);
}

Measurement gloo_start(const Target& target, std::size_t ranks) {
  return start_up(target, ranks, ranks);
}

namespace {

Measurement move_value(const Target& target, std::size_t bytes, std::size_t times,
                       const Script& script, const Script& before) {
  Swarm swarm(target.host, target.port);
  connect_all(swarm, 1);
  swarm.run(0, 1, before);
  const Stretch stretch(target);
  swarm.run(0, 1, script);
  (void)bytes;
  return stretch.done(times);
}

}  // namespace

Measurement set_value(const Target& target, std::size_t bytes, std::size_t times) {
  const std::vector<std::pair<std::string, std::string>> nothing;
  const std::vector<std::pair<std::string, std::string>> all(
      times, {set(target.tag, std::string(bytes, 's')) + ping(kNonce), kPong});
  return move_value(target, bytes, times, all_say(all), all_say(nothing));
}

Measurement get_value(const Target& target, std::size_t bytes, std::size_t times) {
  const std::string value(bytes, 'g');
  const std::vector<std::pair<std::string, std::string>> before{
      {set(target.tag, value) + ping(kNonce), kPong}};
  const std::string ask = get(target.tag);
  const std::string head = text(value).substr(0, 64);
  const Script script{
      [&](std::size_t, std::size_t at, Step& step) {
        step = {ask, 8 + bytes};
        return at < times;
      },
      [&](std::size_t, std::size_t, std::string_view reply) { return reply == head; }};
  return move_value(target, bytes, times, script, all_say(before));
}

Measurement fan_out(const Target& target, std::size_t bytes, std::size_t waiters) {
  const std::string value(bytes, 'f');
  const std::string want = wait({target.tag});
  const std::string ask = get(target.tag);
  const std::string give = set(target.tag, value);
  const std::string head = text(value).substr(0, 64);
  const Script script{[&](std::size_t connection, std::size_t at, Step& step) {
                        if (connection == waiters) {
                          step = {give, 0};
                          return at == 0;
                        }
                        step = at == 0 ? Step{want, 1} : Step{ask, 8 + bytes};
                        return at < 2;
                      },
                      [&](std::size_t, std::size_t at, std::string_view reply) {
                        return at == 0 ? reply == kWoken : reply == head;
                      }};
  Swarm swarm(target.host, target.port);
  connect_all(swarm, waiters + 1);
  swarm.begin(0, waiters, script);
  // A round trip of another client completes only after the server has processed the earlier waits.
  Swarm other(target.host, target.port);
  for (int times = 0; times < 20; ++times) {
    connect_all(other, 1);
  }
  const Stretch stretch(target);
  swarm.begin(waiters, 1, script);
  swarm.finish();
  return stretch.done(2 * waiters + 1);
}

void hold_idle(const Target& target, std::size_t connections,
               const std::function<void()>& meanwhile) {
  Swarm swarm(target.host, target.port);
  if (connections > 0) connect_all(swarm, connections);
  meanwhile();
}

}  // namespace ddprun::store::bench
