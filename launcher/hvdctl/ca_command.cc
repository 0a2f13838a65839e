#include "launcher/hvdctl/ca_command.h"

#include <errno.h>
#include <fmt/chrono.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/option_table.h"
#include "base/plural.h"
#include "launcher/hvdctl/authority.h"

namespace hvd {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kSkew = 300;  // s: clocks of the nodes may be behind
constexpr std::uint64_t kMostDays = 36'500;

struct CaOptions {
  std::string dir;
  std::string name = "hvdrun";
  std::string user;
  std::string node;
  std::string address;
  std::string serial;
  std::string out;
  std::uint64_t days = 0;  // 0: the kind's own
  bool wants_help = false;
};

OptionRow<CaOptions> dir_row() {
  return text_row<CaOptions>("dir", "DIR", "folder of the authority (~/.config/hvdrun/ca)",
                             &CaOptions::dir);
}
OptionRow<CaOptions> days_row(const char* help) {
  return count_row<CaOptions>("days", help, 1, kMostDays, &CaOptions::days);
}
OptionRow<CaOptions> help_row() {
  return flag_row<CaOptions>("help", "print this", &CaOptions::wants_help);
}
std::vector<OptionRow<CaOptions>> whom_rows() {
  return {text_row<CaOptions>("user", "NAME", "a person: who may start jobs", &CaOptions::user),
          text_row<CaOptions>("node", "NAME", "a node, by the name that -H has", &CaOptions::node)};
}
OptionRow<CaOptions> out_row() {
  return text_row<CaOptions>("out", "DIR", "folder for key and certificate (./NAME)",
                             &CaOptions::out);
}

// One row per action; the table is the options that it takes.
struct CaAction {
  const char* word;
  const char* help;
  OptionTable<CaOptions> options;
  Result<std::string> (*run)(const CaOptions&, const CaEnvironment&);
};

std::string date_text(std::int64_t time) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(time)));
}

Result<PeerIdentity> identity_of(const CaOptions& options) {
  if (options.user.empty() == options.node.empty()) {
    return make_error(ExitCode::kUsage, "name one of --user NAME and --node NAME");
  }
  PeerIdentity identity{PeerIdentity::Kind::kUser, options.user};
  if (!options.node.empty()) identity = {PeerIdentity::Kind::kNode, options.node};
  if (is_identity_name(identity.name)) return identity;
  return make_error(ExitCode::kUsage,
                    "--{} {} is no name; write letters, digits, '_', '.' and '-', beginning with a "
                    "letter or digit",
                    options.node.empty() ? "user" : "node", identity.name);
}

Result<std::vector<std::string>> split_addresses(const CaOptions& options) {
  std::vector<std::string> addresses;
  std::string_view rest = options.address;
  if (!rest.empty() && options.node.empty()) {
    return make_error(ExitCode::kUsage, "--address belongs to --node");
  }
  while (!rest.empty()) {
    const std::string one(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (!is_identity_name(one) && !is_ip_address(one)) {
      return make_error(ExitCode::kUsage, "--address {}: \"{}\" is no name and no address",
                        options.address, one);
    }
    addresses.push_back(one);
  }
  return addresses;
}

Validity validity_from(std::int64_t now, std::uint64_t days) {
  return {now - kSkew, now + static_cast<std::int64_t>(days) * kDay};
}

std::uint64_t days_for(const CaOptions& options, const PeerIdentity& identity) {
  constexpr std::uint64_t kNodeDays = 365;
  constexpr std::uint64_t kUserDays = 90;
  if (options.days > 0) return options.days;
  return identity.kind == PeerIdentity::Kind::kNode ? kNodeDays : kUserDays;
}

std::string folder_for(const CaOptions& options, const PeerIdentity& identity) {
  return options.out.empty() ? identity.name : options.out;
}

// client.* for people, agent.* for nodes.
std::string base_for(const CaOptions& options, const PeerIdentity& identity) {
  return folder_for(options, identity) +
         (identity.kind == PeerIdentity::Kind::kUser ? "/client" : "/agent");
}

// With ca.crt beside them; nodes get the revocation list, too.
Result<std::string> issue_with(Authority& authority, const CaOptions& options,
                               const CertificateRequest& request) {
  const std::string folder = folder_for(options, request.identity);
  const std::string base = base_for(options, request.identity);
  if (authority.validity().until <= request.validity.from) {
    return make_error("the authority itself has expired, on {}; make another with hvdctl ca init",
                      date_text(authority.validity().until));
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return make_error("{} cannot be made: {}", folder, error.message());
  ::chmod(folder.c_str(), 0700);
  const auto list = authority.revocation_list();
  if (!list) return tl::unexpected(list.error());
  const auto issued = authority.issue(request);
  if (!issued) return tl::unexpected(issued.error());
  const auto facts = read_certificate(issued->certificate);
  if (!facts) return tl::unexpected(facts.error());
  std::vector<std::tuple<std::string, std::string, bool>> files = {
      {base + ".key", issued->key, true},
      {base + ".crt", issued->certificate, false},
      {folder + "/ca.crt", authority.certificate(), false},
      {folder + "/crl.pem", *list, false}};
  std::string names;
  for (const auto& [path, text, is_secret] : files) {
    if (auto done = write_whole(path, text, is_secret); !done) return tl::unexpected(done.error());
    names += " " + path;
  }
  return fmt::format("{}, serial {}, valid until {}:{}\n", identity_text(facts->identity),
                     facts->serial, date_text(facts->validity.until), names);
}

Result<std::string> init(const CaOptions& options, const CaEnvironment& environment) {
  constexpr std::uint64_t kAuthorityDays = 3650;
  const Validity validity =
      validity_from(environment.now, options.days > 0 ? options.days : kAuthorityDays);
  const auto made = Authority::create(options.dir, options.name, validity);
  if (!made) return tl::unexpected(made.error());
  return fmt::format(
      "authority {} in {}, valid until {}; ca.key there is its secret: keep it off the nodes\n",
      options.name, options.dir, date_text(made->validity().until));
}

Result<std::string> issue(const CaOptions& options, const CaEnvironment& environment) {
  const auto identity = identity_of(options);
  if (!identity) return tl::unexpected(identity.error());
  auto addresses = split_addresses(options);
  if (!addresses) return tl::unexpected(addresses.error());
  auto authority = Authority::open(options.dir);
  if (!authority) return tl::unexpected(authority.error());
  const std::string key = base_for(options, *identity) + ".key";
  std::error_code ignored;
  if (std::filesystem::exists(key, ignored)) {
    return make_error(ExitCode::kUsage,
                      "{} is there already; name another folder with --out, or use hvdctl ca renew",
                      key);
  }
  return issue_with(*authority, options,
                    {*identity, std::move(*addresses),
                     validity_from(environment.now, days_for(options, *identity))});
}

Result<std::vector<IssuedCertificate>> certificates_of(const Authority& authority,
                                                       const PeerIdentity& identity) {
  auto all = authority.list();
  if (!all) return all;
  std::erase_if(*all, [&](const auto& one) { return !(one.facts.identity == identity); });
  if (!all->empty()) return all;
  return make_error(ExitCode::kUsage,
                    "this authority has no certificate of {}; hvdctl ca list shows what it has, "
                    "hvdctl ca issue makes one",
                    identity_text(identity));
}

// The same as the newest one, with a key of its own; the older ones stay valid until their time.
Result<std::string> renew(const CaOptions& options, const CaEnvironment& environment) {
  const auto identity = identity_of(options);
  if (!identity) return tl::unexpected(identity.error());
  auto authority = Authority::open(options.dir);
  if (!authority) return tl::unexpected(authority.error());
  const auto earlier = certificates_of(*authority, *identity);
  if (!earlier) return tl::unexpected(earlier.error());
  std::vector<std::string> addresses = earlier->back().facts.addresses;
  std::erase(addresses, identity->name);
  return issue_with(*authority, options,
                    {*identity, std::move(addresses),
                     validity_from(environment.now, days_for(options, *identity))});
}

std::string state_of(const IssuedCertificate& one, std::int64_t now) {
  if (one.revoked) return "revoked " + date_text(*one.revoked);
  return one.facts.validity.until < now ? "expired" : "valid";
}

Result<std::string> list(const CaOptions& options, const CaEnvironment& environment) {
  const auto authority = Authority::open(options.dir);
  if (!authority) return tl::unexpected(authority.error());
  const auto all = authority->list();
  if (!all) return tl::unexpected(all.error());
  std::string text = fmt::format("{:<32}  {:<24}  {:<10}  {:<10}  {}\n", "serial", "whose", "from",
                                 "until", "state");
  for (const IssuedCertificate& one : *all) {
    text += fmt::format("{:<32}  {:<24}  {}  {}  {}\n", one.facts.serial,
                        identity_text(one.facts.identity), date_text(one.facts.validity.from),
                        date_text(one.facts.validity.until), state_of(one, environment.now));
  }
  return text;
}

// All certificates of a name, or one by its serial.
Result<std::vector<std::string>> serials_to_revoke(const Authority& authority,
                                                   const CaOptions& options) {
  std::vector<std::string> serials;
  if (options.serial.empty()) {
    const auto identity = identity_of(options);
    if (!identity) return tl::unexpected(identity.error());
    const auto found = certificates_of(authority, *identity);
    if (!found) return tl::unexpected(found.error());
    for (const auto& one : *found) serials.push_back(one.facts.serial);
    return serials;
  }
  if (!options.user.empty() || !options.node.empty()) {
    return make_error(ExitCode::kUsage, "--serial stands alone, without --user and --node");
  }
  const auto all = authority.list();
  if (!all) return tl::unexpected(all.error());
  for (const auto& one : *all) {
    if (one.facts.serial == options.serial) serials.push_back(one.facts.serial);
  }
  if (!serials.empty()) return serials;
  return make_error(ExitCode::kUsage, "--serial {}: this authority has issued no such certificate",
                    options.serial);
}

Result<std::string> revoke(const CaOptions& options, const CaEnvironment& environment) {
  auto authority = Authority::open(options.dir);
  if (!authority) return tl::unexpected(authority.error());
  const auto serials = serials_to_revoke(*authority, options);
  if (!serials) return tl::unexpected(serials.error());
  if (auto done = authority->revoke(*serials, environment.now); !done) {
    return tl::unexpected(done.error());
  }
  return fmt::format(
      "{} revoked; copy the new {}/crl.pem to the nodes and reload their agents; where a node was "
      "revoked, copy it to the users as well (beside their client.crt)\n",
      counted(serials->size(), "certificate"), options.dir);
}

const std::vector<CaAction>& actions() {
  static const std::vector<CaAction> all = [] {
    std::vector<CaAction> rows;
    rows.push_back(
        {"init",
         "make the authority",
         {dir_row(),
          text_row<CaOptions>("name", "NAME", "of it, for people (hvdrun)", &CaOptions::name),
          days_row("of its life (3650)"), help_row()},
         init});
    OptionTable<CaOptions> options = whom_rows();
    options.push_back(text_row<CaOptions>("address", "LIST",
                                          "further names and addresses of a node, with commas",
                                          &CaOptions::address));
    for (auto& row :
         {out_row(), days_row("of its life (a node's 365, a user's 90)"), dir_row(), help_row()})
      options.push_back(row);
    rows.push_back({"issue", "make a key and its certificate", options, issue});
    options = whom_rows();
    for (auto& row :
         {out_row(), days_row("of its life (a node's 365, a user's 90)"), dir_row(), help_row()})
      options.push_back(row);
    rows.push_back(
        {"renew", "the same with a new key, in place of the files in --out", options, renew});
    rows.push_back({"list", "what was issued", {dir_row(), help_row()}, list});
    options = whom_rows();
    options.push_back(
        text_row<CaOptions>("serial", "HEX", "one certificate alone", &CaOptions::serial));
    for (auto& row : {dir_row(), help_row()}) options.push_back(row);
    rows.push_back({"revoke", "end certificates before their time", options, revoke});
    return rows;
  }();
  return all;
}

}  // namespace

std::string ca_help() {
  std::string text =
      "hvdctl ca ACTION [options]: the private authority by whose certificates hvdrun and the "
      "agents of the nodes know each other\n";
  for (const CaAction& action : actions()) {
    text += fmt::format("  {:<8} {}\n", action.word, action.help);
  }
  return text + "hvdctl ca ACTION --help shows the options of each.\n";
}

Result<std::string> run_ca(const std::vector<std::string>& words,
                           const CaEnvironment& environment) {
  if (words.empty() || words.front() == "--help") return ca_help();
  for (const CaAction& action : actions()) {
    if (words.front() != action.word) continue;
    const std::string command = fmt::format("hvdctl ca {}", action.word);
    auto options = parse_options(action.options, command.c_str(),
                                 std::vector<std::string>(words.begin() + 1, words.end()));
    if (!options) return tl::unexpected(options.error());
    if (options->wants_help) {
      return option_help(action.options, fmt::format("{} [options]: {}\n", command, action.help));
    }
    if (options->dir.empty()) options->dir = environment.default_folder;
    return action.run(*options, environment);
  }
  return make_error(ExitCode::kUsage, "hvdctl ca {} is no action; see hvdctl ca --help",
                    words.front());
}

}  // namespace hvd
