#include "rendezvous/store/refusal.hpp"

namespace ddprun::store {

namespace {

std::string over(const char* what, std::uint64_t value, const char* limit, std::size_t bound) {
  return what + std::to_string(value) + ", more than " + limit + " = " + std::to_string(bound);
}

std::string cause(const Refusal& refusal, const Limits& limits) {
  const std::uint64_t value = refusal.value;
  switch (refusal.reason) {
    case Reason::kNotAStoreClient:
      return "the first bytes are not a c10d request (first byte " + std::to_string(value) + ")";
    case Reason::kWrongMagic:
      return "wrong magic number " + std::to_string(value);
    case Reason::kUnknownOpcode:
      return "unknown opcode " + std::to_string(value);
    case Reason::kKeyTooLong:
      return over("key length ", value, "key_bytes", limits.key_bytes);
    case Reason::kValueTooLong:
      return over("value length ", value, "value_bytes", limits.value_bytes);
    case Reason::kTooManyKeys:
      return over("key count ", value, "keys_per_request", limits.keys_per_request);
    case Reason::kRequestTooLong:
      return over("request bytes ", value, "request_bytes", limits.request_bytes);
    case Reason::kStoreFull:
      return over("bytes in the store would be ", value, "store_bytes", limits.store_bytes);
    case Reason::kShareFull:
      return "this connection has added more than half of store_bytes = " +
             std::to_string(limits.store_bytes);
    case Reason::kAddressShareFull:
      return "connections from this address have added more than three quarters of store_bytes = " +
             std::to_string(limits.store_bytes);
    case Reason::kTooManyStoredKeys:
      return over("keys in the store would be ", value, "keys", limits.keys);
    case Reason::kTooManyWaits:
      return over("waits in the store would be ", value, "waits", limits.waits);
    case Reason::kTooManyReplies:
      return over("unsent reply bytes would be ", value, "reply_bytes", limits.reply_bytes);
    case Reason::kTooManyConnections:
      return over("connections would be ", value, "connections", limits.connections);
    case Reason::kNotANumber:
      return "the key's value is not a 64-bit number";
    case Reason::kSumOverflows:
      return "the sum does not fit in 64 bits; the value is unchanged";
    case Reason::kTorchrun:
      return "a torchrun agent came to the coordinator of a ddprun run; start its node with "
             "ddprun, or give torchrun another port (--rdzv-endpoint, or --master-port with "
             "static)";
    case Reason::kStranger:
      return "no node of this run has this address; if it is one of a node (NAT, a route that the "
             "node does not know), pass --store-open to the ddprun that serves the store; a node "
             "that torchrun was started on belongs to no run of ddprun";
    case Reason::kOtherUser:
      return "a process of uid " + std::to_string(value) +
             ", which is neither the user of ddprun nor one that its workers run as; pass "
             "--store-open to admit every user of this machine";
    case Reason::kBusyWaiting:
      return "received a request while the connection's WAIT was pending";
  }
  return "unknown reason";
}

}  // namespace

std::string to_text(const Refusal& refusal, const Limits& limits) {
  std::string text = cause(refusal, limits);
  if (!refusal.op) return text;
  return std::string(name_of(*refusal.op)) + ": " + text;
}

}  // namespace ddprun::store
