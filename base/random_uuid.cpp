#include "base/random_uuid.hpp"

#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

namespace ddprun {

std::string random_uuid() {
  return boost::uuids::to_string(boost::uuids::random_generator()());
}

}  // namespace ddprun
