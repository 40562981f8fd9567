#include <string>

#include "tests/style/report.hpp"
#include "tests/style/rules.hpp"
#include "tests/support/catch.hpp"

using ddprun::style::check;
using ddprun::style::functions_of;
using ddprun::style::make_source;

namespace {

/// Every rule that `text`, standing in `path`, breaks: "await await call".
std::string broken_rules(const std::string& path, const std::string& text) {
  std::string rules;
  for (const auto& violation : check(make_source(path, text))) {
    rules += (rules.empty() ? "" : " ") + violation.rule;
  }
  return rules;
}

std::string in_coroutine(const std::string& statement) {
  return broken_rules("agent/loop.cpp", "awaitable<void> f() {\n  " + statement + "\n}\n");
}

}  // namespace

TEST_CASE("a room that includes against the direction is named") {
  CHECK(broken_rules("base/a.cpp", "#include \"net/listen.hpp\"\n") == "include");
  CHECK(broken_rules("net/a.cpp", "#include \"agent/agent.hpp\"\n") == "include");
  CHECK(broken_rules("rendezvous/store/a.cpp", "#include \"rendezvous/round/run.hpp\"\n") ==
        "include");
  CHECK(broken_rules("agent/report/a.cpp", "#include \"agent/proc/spawn.hpp\"\n") == "include");
  CHECK(broken_rules("agent/report/a.cpp", "#include \"agent/agent.hpp\"\n") == "include");
  CHECK(broken_rules("agent/a.cpp", "#include \"launcher/options.hpp\"\n") == "include");
  CHECK(broken_rules("trainer/a.cpp", "#include \"base/result.hpp\"\n") == "include");
  CHECK(broken_rules("worker_api/a.cpp", "#include \"base/result.hpp\"\n") == "include");
  CHECK(broken_rules("launcher/a.cpp", "#include \"worker_api/ddprun_worker.h\"\n") == "include");
  CHECK(broken_rules("launcher/options/a.cpp", "#include \"launcher/request/request.hpp\"\n") ==
        "include");
}

TEST_CASE("includes along the direction are fine") {
  CHECK(broken_rules("net/a.cpp", "#include \"base/result.hpp\"\n").empty());
  CHECK(broken_rules("agent/a.cpp", "#include \"agent/config/plan.hpp\"\n").empty());
  CHECK(
      broken_rules("agent/coordinate/a.cpp", "#include \"rendezvous/store/server.hpp\"\n").empty());
  CHECK(broken_rules("trainer/a.cpp", "#include \"worker_api/ddprun_worker.hpp\"\n").empty());
  CHECK(broken_rules("tests/agent/a.cpp", "#include \"agent/config/plan.hpp\"\n").empty());
}

TEST_CASE("a library that a room must not know is named") {
  CHECK(broken_rules("agent/report/a.cpp", "#include <boost/asio/ip/tcp.hpp>\n") == "include");
  CHECK(broken_rules("worker_api/a.cpp", "#include <spdlog/spdlog.h>\n") == "include");
  CHECK(broken_rules("agent/a.cpp", "#include <boost/process/v2/process.hpp>\n") == "include");
  CHECK(broken_rules("agent/proc/spawn.cpp", "#include <boost/process/v2/process.hpp>\n") ==
        "include");
}

TEST_CASE("an include relative to the file is named") {
  CHECK(broken_rules("net/a.cpp", "#include \"listen.hpp\"\n") == "include");
  CHECK(broken_rules("net/a.cpp", "#include \"../base/result.hpp\"\n") == "include");
}

TEST_CASE("co_await is allowed as a statement and to initialise a local") {
  CHECK(in_coroutine("co_await timer.async_wait(use_awaitable);").empty());
  CHECK(in_coroutine("auto size = co_await read(socket, buffer);").empty());
  CHECK(in_coroutine("const auto [ec, n] = co_await read(socket, buffer);").empty());
  CHECK(in_coroutine("answer = co_await read(socket,\n                buffer);").empty());
}

TEST_CASE("co_await in a condition or beside an operator is found") {
  CHECK(in_coroutine("if (co_await ready()) { stop(); }") == "await");
  CHECK(in_coroutine("while (co_await more()) { step(); }") == "await");
  CHECK(in_coroutine("switch (co_await kind()) { default: break; }") == "await");
  CHECK(in_coroutine("auto x = ok ? co_await f() : g();") == "await");
  CHECK(in_coroutine("auto x = co_await f() && g();") == "await");
  CHECK(in_coroutine("use(co_await f());") == "await");
  CHECK(in_coroutine("for (auto& x : co_await f()) { use(x); }") == "await");
  CHECK(in_coroutine("co_return co_await f();") == "await");
}

TEST_CASE("braces and lambdas in an awaited expression are found, over lines too") {
  CHECK(in_coroutine("auto x = co_await join(store, Request{name});") == "await");
  CHECK(in_coroutine("auto x = co_await join(store,\n                {name, 1});") == "await");
  CHECK(in_coroutine("co_await run([p] { return *p; });") == "await");
}

TEST_CASE("co_await in a comment or a string is ignored") {
  CHECK(in_coroutine("// if (co_await ready())").empty());
  CHECK(in_coroutine("log(\"if (co_await ready())\");").empty());
  CHECK(in_coroutine("log(R\"x(if (co_await \"ready\"))x\");").empty());
}

TEST_CASE("a test that sleeps is found, in C++ and in Python") {
  CHECK(broken_rules("tests/a_test.cpp", "void f() { std::this_thread::sleep_for(1s); }") ==
        "call");
  CHECK(broken_rules("tests/a_test.cpp", "void f() { ::usleep(10); }") == "call");
  CHECK(broken_rules("tests/a_test.py", "import time\ntime.sleep(1)\n") == "call");
  CHECK(broken_rules("tests/a_test.cpp", "const char* argv = \"sleep (1)\";\n").empty());
}

TEST_CASE("a process started outside agent/proc is found") {
  CHECK(broken_rules("agent/a.cpp", "void f() { ::fork(); }") == "call");
  CHECK(broken_rules("launcher/a.cpp", "void f() { vfork(); }") == "call");
  CHECK(broken_rules("launcher/a.cpp", "void f() { ::clone(g, s, 0, a); }") == "call");
  CHECK(broken_rules("agent/proc/spawn.cpp", "void f() { ::fork(); }").empty());
  CHECK(broken_rules("launcher/a.cpp", "void f() { at_fork(); }").empty());
  CHECK(broken_rules("trainer/a.cpp", "void f() { tensor.clone(); }").empty());
}

TEST_CASE("a pure core that reads a clock is found") {
  CHECK(broken_rules("agent/report/a.cpp", "void f() { Clock::now(); }") == "call");
  CHECK(broken_rules("agent/a.cpp", "void f() { Clock::now(); }").empty());
}

TEST_CASE("limits: one test at the limit and one beyond it") {
  const std::string at(100, 'x');
  CHECK(broken_rules("net/a.cpp", at + "\n").empty());
  CHECK(broken_rules("net/a.cpp", at + "x\n") == "columns");
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "f();\n";
    }
    return text;
  };
  CHECK(broken_rules("net/a.cpp", lines(600)).empty());
  CHECK(broken_rules("net/a.cpp", lines(601)) == "file");
  CHECK(broken_rules("net/a.cpp", "void f() {\n" + lines(68) + "}\n").empty());
  CHECK(broken_rules("net/a.cpp", "void f() {\n" + lines(69) + "}\n") == "function");
}

TEST_CASE("functions are distinguished from types, namespaces and initialisers") {
  const auto found = functions_of(make_source("net/a.cpp", R"(
namespace a {
struct B {
  B(int x) : x_{x}, y_{2} {
    work();
  }
  int get() const { return x_; }
  int x_;
  int y_;
};
const std::vector<int> kTable{1, 2};
template <class T>
auto twice(T value) -> T {
  if (value) {
    return [&] { return value; }();
  }
  return value;
}
}  // namespace a
)"));
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "B");
  CHECK(found[0].length == 3);
  CHECK(found[1].name == "get");
  CHECK(found[2].name == "twice");
  CHECK(found[2].length == 6);
}

TEST_CASE("a long Python function is found") {
  std::string text = "def f():\n";
  for (int i = 0; i < 70; ++i) {
    text += "    g()\n";
  }
  CHECK(broken_rules("bench/a.py", text) == "function");
}

TEST_CASE("left-over marks and paths of one machine are found") {
  const std::string mark = std::string("FIX") + "ME";
  CHECK(broken_rules("net/a.cpp", "// " + mark + " later\n") == "mark");
  CHECK(broken_rules("net/a.cpp", "// A" + mark + "B\n").empty());
  const std::string path = std::string("/wo") + "rk/x";
  CHECK(broken_rules("docs/a.md", "see " + path + "\n") == "path");
  CHECK(broken_rules("docs/a.md", "see out" + path + "\n").empty());
}

TEST_CASE("a word that is not of the field is found, in comments and in messages") {
  CHECK(broken_rules("base/a.cpp", "// Nobody reads it.\n") == "wording");
  CHECK(broken_rules("trainer/a.py", "print(\"training goes on\")\n") == "wording");
  CHECK(broken_rules("docs/LINK.md", "The agents begin anew.\n") == "wording");
  CHECK(broken_rules("base/a.cpp", "// No client reads it; nobody_reads.\n").empty());
}

TEST_CASE("a header opens with a sentence and is included once") {
  CHECK(broken_rules("net/a.hpp", "// What it is.\n#pragma once\n").empty());
  CHECK(broken_rules("net/a.hpp", "#pragma once\n") == "header");
  CHECK(broken_rules("net/a.hpp", "// What it is.\nint x;\n") == "header");
}

TEST_CASE("a test whose name would be taken for a flag is found") {
  CHECK(broken_rules("tests/a_test.cpp", "TEST_CASE(\"--x works\") {\n}\n") == "name");
  CHECK(broken_rules("tests/a_test.cpp", "TEST_CASE(\"the flag --x\") {\n}\n").empty());
}

TEST_CASE("a link that leads nowhere is found") {
  const auto links_of = [](const std::string& text) {
    return ddprun::style::check_documents(
        {make_source("docs/a.md", text), make_source("net/listen.hpp", "")});
  };
  CHECK(links_of("[x](../net/listen.hpp) [y](../net) [z](a.md) [w](https://a.b)").empty());
  const auto found = links_of("first\n[x](../net/gone.hpp)\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 2);
  CHECK(found[0].sentence == "net/gone.hpp is not there");
}

TEST_CASE("a document that a file names and that is not there is found") {
  const auto found = ddprun::style::check_documents(
      {make_source("docs/a.md", ""), make_source("net/a.hpp", "// docs/a.md, docs/b/c.md.\n"),
       make_source("tests/style/a_test.cpp", "// docs/b.md")});
  REQUIRE(found.size() == 1);
  CHECK(found[0].path == "net/a.hpp");
  CHECK(found[0].sentence == "docs/b/c.md is not there");
}

TEST_CASE("a name in a table of tests that is not exactly the name of a test is found") {
  const auto rows_with = [](const std::string& column, const std::string& cell) {
    const std::string table = "| failure | " + column + " |\n|---|---|\n";
    return ddprun::style::check_documents(
        {make_source("docs/internals/a.md", table + "| a, b | " + cell + " |\n"),
         make_source("tests/a_test.cpp",
                     "f(\"x\");\nTEST_CASE(\"a \\\"peer\\\" \"\n  \"leaves\") {}"),
         make_source("tests/CMakeLists.txt",
                     "set(slurm \"slurm: two\")\nx_test(\"store: ok (${python})\" ARGS \"y\")"),
         make_source("tests/a.py", "@case(\"is lost\", \"root\")\ndef test_it(self):\nsay(\"z\")"),
         make_source("tests/scenario/loss.txt", ""), make_source("bench/a.py", "")});
  };
  const auto rows = [&](const std::string& cell) { return rows_with("tests", cell); };
  CHECK(rows("`a \"peer\" leaves`, `is lost`, `test_it`, `scenario: loss`, `bench/a.py`").empty());
  CHECK(rows("`slurm: two`, `store: ok`").empty());
  const char* wrong = GENERATE("peer", "a \"peer\"", "x", "y", "z", "scenario: gain", "test_i",
                               "bench/b.py", "store: ok (${python})");
  const auto found = rows("`is lost`, `" + std::string(wrong) + "`");
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 3);
  CHECK(found[0].sentence == "no test is called \"" + std::string(wrong) + "\"");
  CHECK(rows("is lost").size() == 1);
  CHECK(rows("`is lost`; `test_it`").size() == 1);
  CHECK(rows("").size() == 1);
  CHECK(rows_with("tests, if any", "").empty());
  CHECK(rows_with("shown by", "a command").empty());
}

TEST_CASE("a code of a report that the documents do not describe is found") {
  const auto found = ddprun::style::check_documents(
      {make_source("docs/REPORT.md", "| `W-EXIT` | ... |\n"),
       make_source("agent/report/verdict.cpp", "{\"W-EXIT\", 1},\n{\"W-LOST\", 2},\n")});
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 2);
  CHECK(found[0].sentence == "W-LOST has no row in docs/REPORT.md");
}

TEST_CASE("a sentence of a program that a second test quotes is found") {
  const auto quotes_of = [](const std::string& second) {
    return ddprun::style::check_sentences(
        {make_source("net/listen.cpp",
                     "auto x = host + \" is not an \"\n \"address of this machine\";"),
         make_source("tests/a_test.cpp", "says(\"x is not an address of this machine\");"),
         make_source("tests/b_test.py", second)});
  };
  CHECK(quotes_of("expect('y is not an ' f'address of {z}')").size() == 1);
  CHECK(quotes_of("expect('an address of this')").empty());
  CHECK(quotes_of("expect('is not an', 'address of this machine')").empty());
  CHECK(quotes_of("@case('x is not an address of this machine')").empty());
  CHECK(quotes_of("# x is not an address of this machine").empty());
  const auto found = quotes_of("\nexpect('is not an address of')");
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 2);
  CHECK_THAT(found[0].sentence,
             ContainsSubstring("net/listen.cpp:1 is quoted in tests/a_test.cpp:1"));
}

TEST_CASE("the report names the longest file and function") {
  const auto report = ddprun::style::size_report(
      {make_source("net/a.cpp", "void quick() {\n}\n"), make_source("net/b.cpp", "int x;\n")});
  CHECK_THAT(report, ContainsSubstring("files: 2") && ContainsSubstring("quick"));
}
