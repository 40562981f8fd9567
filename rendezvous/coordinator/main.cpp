#include <iostream>

#include "base/printable.hpp"
#include "rendezvous/coordinator/command_line.hpp"
#include "rendezvous/coordinator/daemon.hpp"

namespace {

int refuse(const std::string& sentence) {
  std::cerr << "ddprun-rdzvd: " << ddprun::printable(sentence) << " (see ddprun-rdzvd --help)\n";
  return 2;
}

int show(const std::string& text) {
  std::cout << text << std::flush;
  if (std::cout) return 0;
  std::cerr << "ddprun-rdzvd: cannot write to standard output\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  ddprun::coordinator::CommandLine line;
  try {
    line.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return show(line.help());
  } catch (const CLI::CallForVersion& version) {
    return show(std::string(version.what()) + "\n");
  } catch (const ddprun::coordinator::UsageError& error) {
    return refuse(error.sentence);
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  return ddprun::coordinator::run(line.options());
}
