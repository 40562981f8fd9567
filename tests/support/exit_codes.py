"""Exit codes of ddprun's own, as in base/exit_status.hpp."""

JOIN_TIMEOUT = 110
REFUSED = 111
NODE_LOST = 112
COORDINATOR_LOST = 113
