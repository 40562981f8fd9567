#include "rendezvous/protocol/to_json.hpp"

#include "rendezvous/protocol/writer.hpp"

namespace ddprun::protocol {

namespace {

template <class Value>
boost::json::object written(const Value& value) {
  boost::json::object object;
  Writer writer(object);
  fields(writer, value);
  return object;
}

}  // namespace

boost::json::object to_json(const WorkerExit& exit) {
  return written(exit);
}

boost::json::object to_json(const RunFailure& failure) {
  return written(failure);
}

}  // namespace ddprun::protocol
