// The rows of the option table (option_table.cpp) about the protection of the links between nodes:
// the table alone is as long as a file may be.
#pragma once

#include "launcher/options/option_table.hpp"

namespace ddprun {

inline constexpr OptionSpec kSecretFileRow{
    .id = OptionId::kRdzvSecretFile,
    .name = "rdzv-secret-file",
    .variable = OptionVariable::kDdprun,
    .group = OptionGroup::kRendezvous,
    .metavar = "FILE",
    .help =
        "File with the secret of the run, the same on every node: without it no node joins, "
        "and links of nodes are encrypted (TLS 1.3). At least 32 characters, readable only "
        "for its owner; -: the first line of standard input; off: no secret. Without it: "
        "DDPRUN_SECRET, else ~/.config/ddprun/secret (ddprun secret --new), else links in clear "
        "text."};

inline constexpr OptionSpec kTlsCertRow{
    .id = OptionId::kRdzvTlsCert,
    .name = "rdzv-tls-cert",
    .variable = OptionVariable::kDdprun,
    .group = OptionGroup::kRendezvous,
    .metavar = "FILE",
    .help =
        "In place of a secret: the certificate of this node (PEM). Nodes without one of the "
        "same CA do not join, and links of nodes are encrypted (TLS 1.3). That of the "
        "coordinator names the host of --rdzv-endpoint."};

inline constexpr OptionSpec kTlsKeyRow{
    .id = OptionId::kRdzvTlsKey,
    .name = "rdzv-tls-key",
    .variable = OptionVariable::kDdprun,
    .group = OptionGroup::kRendezvous,
    .metavar = "FILE",
    .help = "Key of --rdzv-tls-cert, readable only for its owner."};

inline constexpr OptionSpec kTlsCaRow{
    .id = OptionId::kRdzvTlsCa,
    .name = "rdzv-tls-ca",
    .variable = OptionVariable::kDdprun,
    .group = OptionGroup::kRendezvous,
    .metavar = "FILE",
    .help = "Certificates of the CA that has signed those of all nodes."};

}  // namespace ddprun
