// Build tool: prints what is generated from the option table, for the files that packages install.
#include <cstdio>
#include <string_view>

#include "launcher/options.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  std::string text;
  if (what == "man") text = hvd::man_page();
  if (what == "bash") text = hvd::bash_completion();
  if (what == "zsh") text = hvd::zsh_completion();
  if (what == "fish") text = hvd::fish_completion();
  if (text.empty()) {
    std::fputs("usage: hvdrun_print_docs man|bash|zsh|fish\n", stderr);
    return 2;
  }
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : 1;
}
