// Input from a hostile peer: always an error, never a crash or unlimited memory.
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::protocol;

namespace {

/// A body that decodes must round-trip.
void take(const std::string& body) {
  const auto message = decode(body);
  if (!message) {
    CHECK_FALSE(message.error().sentence.empty());
    return;
  }
  const auto again = decode(encode(*message));
  REQUIRE(again.has_value());
  CHECK(*again == *message);
}

std::vector<std::string> corpus() {
  std::vector<std::string> bodies;
  for (const auto& entry : std::filesystem::directory_iterator(DDPRUN_MESSAGE_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    bodies.push_back(text.str());
  }
  return bodies;
}

}  // namespace

TEST_CASE("an invalid message is an error with a sentence") {
  for (const char* body :
       {"", "null", "[]", "{}", "{", "\"hello\"", R"({"type":1})", R"({"type":"hello"})",
        R"({"type":"stop","round":1.0,"signal":15,"grace_ms":0,"reason":""})",
        R"({"type":"stop","round":0,"signal":15,"grace_ms":0,"reason":""})",
        R"({"type":"stop","round":1,"signal":65,"grace_ms":0,"reason":""})",
        R"({"type":"stop","round":1,"signal":15,"grace_ms":-1,"reason":""})",
        R"({"type":"stop","round":99999999999999999999,"signal":15,"grace_ms":0,"reason":""})",
        R"({"type":"leave","exit_code":0,"reason":"x"})",
        R"({"type":"report","round":1,"state":"flying","store_port":1})",
        R"({"type":"report","round":1,"state":"failed","store_port":1,"failure":[]})",
        R"({"type":"beat"} {"type":"beat"})", "{\"type\":\"be\xff\"}"}) {
    INFO(body);
    const auto message = decode(body);
    REQUIRE(message.has_error());
    CHECK_FALSE(message.error().sentence.empty());
  }
}

TEST_CASE("deep nesting is an error, not a deep recursion") {
  const auto beat = [](std::size_t depth) {
    return R"({"type":"beat","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  CHECK(decode(beat(kDepthMax - 1)).has_value());
  CHECK(decode(beat(kDepthMax)).has_error());
  CHECK(decode(std::string(500'000, '[')).has_error());
}

TEST_CASE("a node's address that no node could reach is an error in its hello") {
  Hello hello;
  hello.run_id = RunId("r");
  hello.agent = AgentId("a");
  hello.host = "node";
  hello.store_port = 1;
  hello.local_world_size = 1;
  for (const char* address : {"", "10.0.0.7", "fd00::7", "fe80::7%eth0", "node-1.example"}) {
    hello.address = address;
    CHECK(decode(encode(hello)).has_value());
  }
  for (const char* address : {"not a host!", "0.0.0.0", "::", "224.0.0.1", "a\nb"}) {
    hello.address = address;
    CHECK_THAT(decode(encode(hello)).error().sentence, ContainsSubstring("no address of a host"));
  }
}

TEST_CASE("an object with many fields is an error before it becomes a table") {
  const auto beat = [](std::size_t fields, const std::string& inner) {
    std::string body = R"({"type":"beat","x":{"y":[1,2,3],"z":")" + inner + "\"";
    for (std::size_t field = 2; field < fields; ++field) {
      body += ",\"x" + std::to_string(field) + "\":0";
    }
    return body + "}}";
  };
  CHECK(decode(beat(kFieldsMax, ",,,{{{[[[\\\"{")).has_value());
  CHECK_THAT(decode(beat(kFieldsMax + 1, "")).error().sentence,
             ContainsSubstring("an object has more than"));
  CHECK(decode(beat(8192, "")).has_error());
}

TEST_CASE("fields that are not known are ignored, and too many of them are an error") {
  const auto beat = [](std::size_t fields) {
    std::string body = R"({"type":"beat")";
    for (std::size_t field = 2; field < fields; ++field) {
      body += ",\"x" + std::to_string(field) + "\":0";
    }
    return body + "}";
  };
  const auto list = [](std::size_t items) {
    std::string body = R"({"type":"beat","x":[0)";
    for (std::size_t item = 1; item < items; ++item) body += ",0";
    return body + "]}";
  };
  CHECK(decode(beat(kFieldsMax)).has_value());
  for (const std::string& body : {beat(80'000), list(80'000), list(500'000)}) {
    REQUIRE(body.size() < kFrameBytesMax);
    const auto refused = decode(body);
    REQUIRE(refused.has_error());
    CHECK_THAT(refused.error().sentence,
               ContainsSubstring("more than ") && ContainsSubstring(" fields"));
  }
  const std::string text = R"({"type":"beat","x":")" + std::string(100'000, ',') + R"(\"[{,"})";
  CHECK(decode(text).has_value());
}

TEST_CASE("text is refused one byte beyond its limit") {
  const auto leave = [](std::size_t bytes) {
    return R"({"type":"leave","exit_code":1,"round":0,"reason":")" + std::string(bytes, 'x') +
           "\"}";
  };
  CHECK(decode(leave(kTextBytesMax)).has_value());
  CHECK(decode(leave(kTextBytesMax + 1)).has_error());
}

TEST_CASE("every body of the corpus, truncated anywhere or with any byte changed, is handled") {
  std::mt19937 random(1);
  const auto bodies = corpus();
  REQUIRE(bodies.size() >= 12);
  for (const std::string& body : bodies) {
    take(body);
    for (std::size_t cut = 0; cut < body.size(); ++cut) take(body.substr(0, cut));
    for (int change = 0; change < 500; ++change) {
      std::string changed = body;
      for (unsigned i = 0; i <= random() % 3; ++i) {
        changed[random() % changed.size()] = static_cast<char>(random() % 256);
      }
      take(changed);
    }
  }
}
