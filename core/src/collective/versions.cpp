// SPDX-License-Identifier: Apache-2.0
#include "collective/versions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "perigee/plugin.hpp"
#include "registry/plugin.hpp"

namespace perigee {

std::string own_versions() {
  std::vector<std::string> lines;
  for (const LoadedPlugin* plugin : find_plugins()) {
    if (plugin->version.empty() || plugin->duplicate || (plugin->state == PluginState::unavailable && !plugin->opened))
      continue;
    lines.push_back(plugin->name + " " + plugin->version + "\n");
  }
  std::sort(lines.begin(), lines.end());
  std::string text = "perigee " PERIGEE_VERSION "\n";
  for (const std::string& line : lines)
    if (text.size() + line.size() < kVersionsLength) text += line;
  return text;
}

std::string versions_that_differ(const std::vector<std::string>& said, const std::vector<int32_t>& ranks) {
  struct First {
    std::string version;
    int32_t rank;
  };
  std::map<std::string, First> known;
  std::set<std::string> told;
  std::string differ;
  for (size_t i = 0; i < said.size(); i++) {
    std::istringstream lines(said[i]);
    for (std::string name, version; lines >> name >> std::ws && std::getline(lines, version);) {
      const First& first = known.try_emplace(name, First{version, ranks[i]}).first->second;
      if (first.version == version || !told.insert(name).second) continue;
      if (!differ.empty()) differ += "; ";
      differ += pg::format("rank %d has %s %s, rank %d has %s", first.rank, name.c_str(), first.version.c_str(),
                           ranks[i], version.c_str());
    }
  }
  return differ;
}

}  // namespace perigee
