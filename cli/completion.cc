#include "cli/completion.h"

#include <fmt/format.h>

#include <vector>

namespace millrace::cli {
namespace {

/// One command as completion sees it: where it is, and what may stand there.
struct Place {
  std::string path;                                          ///< "topics create"; "" for the program
  std::string lists = {};                                    ///< whose names may stand there: "topics", "groups"
  std::vector<std::pair<std::string, std::string>> words;    ///< commands with their descriptions
  std::vector<std::pair<std::string, std::string>> options;  ///< with their dashes
};

// The first sentence's worth, without what shells would take for syntax.
std::string brief(const std::string& description) {
  std::string out;
  for (char c : description.substr(0, description.find_first_of(";[(")))
    if (c != '\'' && c != '"' && c != '`' && c != '$' && c != ':' && c != '\\' && c != ',') out += c;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

void add_options(Place& place, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      place.options.emplace_back("--" + name, brief(option->get_description()));
    for (const std::string& name : option->get_snames())
      place.options.emplace_back("-" + name, brief(option->get_description()));
    if (option->get_positional() && option->get_name() == "TOPIC") place.lists = "topics";
    if (option->get_positional() && option->get_name() == "GROUP") place.lists = "groups";
    if (option->get_positional() && option->get_name() == "SHELL")
      for (const char* shell : {"bash", "zsh", "fish"}) place.words.emplace_back(shell, shell);
  }
}

void collect(std::vector<Place>& places, const CLI::App& root, const CLI::App& app, const std::string& path) {
  Place place{path, {}, {}, {}};
  add_options(place, app);
  // The global options may stand anywhere.
  if (&app != &root) {
    for (const CLI::Option* option : root.get_options())
      for (const std::string& name : option->get_lnames())
        if (name != "version" && name != "help")
          place.options.emplace_back("--" + name, brief(option->get_description()));
  }
  auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : below) place.words.emplace_back(sub->get_name(), brief(sub->get_description()));
  places.push_back(std::move(place));
  for (const CLI::App* sub : below)
    collect(places, root, *sub, path.empty() ? sub->get_name() : path + " " + sub->get_name());
}

std::string names(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  for (const auto& [name, description] : entries) out += (out.empty() ? "" : " ") + name;
  return out;
}

// Words that a command line can have before the one to be completed; options and their values are skipped over.
std::string path_words(const std::vector<Place>& places) {
  std::string out;
  for (const Place& place : places)
    if (!place.path.empty()) out += (out.empty() ? "'" : "|'") + place.path + "'";
  return out;
}

constexpr const char* kBashHead = R"(# bash completion of millrace: source <(millrace completion bash)
_millrace() {
  local cur=${COMP_WORDS[COMP_CWORD]} path= next word words= options= lists=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="${path:+$path }$word"
    case "$next" in
)";

std::string bash(const std::vector<Place>& places) {
  std::string out = kBashHead;
  out += "      " + path_words(places) + ") path=$next ;;\n    esac\n  done\n  case \"$path\" in\n";
  for (const Place& place : places)
    out += fmt::format("    '{}') words='{}' options='{}' lists={} ;;\n", place.path, names(place.words),
                       names(place.options), place.lists);
  out += R"(  esac
  if [[ $cur == -* ]]; then
    words=$options
  elif [[ -n $lists ]]; then
    words=$(millrace $lists list --names --timeout 1s 2>/dev/null)
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _millrace millrace
)";
  return out;
}

std::string zsh_array(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out;
  for (const auto& [name, description] : entries)
    out += fmt::format("{}'{}:{}'", out.empty() ? "" : " ", name, description);
  return out;
}

std::string zsh(const std::vector<Place>& places) {
  std::string out = R"zsh(#compdef millrace
# zsh completion of millrace: put it into a file _millrace in a directory of $fpath
_millrace() {
  local cur=${words[CURRENT]} path_= next word lists=
  local -a entries options
  for word in "${(@)words[2,CURRENT-1]}"; do
    next="${path_:+$path_ }$word"
    case "$next" in
)zsh";
  out += "      " + path_words(places) + ") path_=$next ;;\n    esac\n  done\n  case \"$path_\" in\n";
  for (const Place& place : places)
    out += fmt::format("    '{}') entries=({}); options=({}); lists={} ;;\n", place.path, zsh_array(place.words),
                       zsh_array(place.options), place.lists);
  out += R"zsh(  esac
  if [[ $cur == -* ]]; then
    entries=($options)
  elif [[ -n $lists ]]; then
    entries=(${(f)"$(millrace $lists list --names --timeout 1s 2>/dev/null)"})
  fi
  _describe 'millrace' entries
}
if [[ $funcstack[1] == _millrace ]]; then
  _millrace "$@"
else
  compdef _millrace millrace
fi
)zsh";
  return out;
}

std::string fish(const std::vector<Place>& places) {
  std::string out = R"(# fish completion of millrace: millrace completion fish | source
function __millrace_path
  set -l path ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$path $word")
    switch "$next"
)";
  std::string cases;
  for (const Place& place : places)
    if (!place.path.empty()) cases += " '" + place.path + "'";
  out += "      case" + cases + "\n        set path $next\n    end\n  end\n  echo $path\nend\n";
  out += "function __millrace_at\n  test (__millrace_path) = \"$argv\"\nend\n";
  out += "complete -c millrace -f\n";
  for (const Place& place : places) {
    std::string condition = fmt::format("complete -c millrace -n '__millrace_at \"{}\"'", place.path);
    for (const auto& [name, description] : place.words)
      out += fmt::format("{} -a '{}' -d '{}'\n", condition, name, description);
    for (const auto& [name, description] : place.options)
      out += name.starts_with("--") ? fmt::format("{} -l '{}' -d '{}'\n", condition, name.substr(2), description)
                                    : fmt::format("{} -s '{}' -d '{}'\n", condition, name.substr(1), description);
    if (!place.lists.empty())
      out += condition + fmt::format(" -a '(millrace {} list --names --timeout 1s 2>/dev/null)'\n", place.lists);
  }
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  std::vector<Place> places;
  collect(places, app, app, "");
  if (shell == "bash") return bash(places);
  return shell == "zsh" ? zsh(places) : fish(places);
}

}  // namespace millrace::cli
