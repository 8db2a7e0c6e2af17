// SPDX-License-Identifier: Apache-2.0
// NVRTC's functions by the host's compiler: the very source that a program gives, over the emulator, becomes a shared
// object. What it says of itself (its standard headers) is left out, for the host has its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>
#include <vector>

#include "emulator.hpp"
#include "library.hpp"
#include "state.hpp"

#define STANDIN_API extern "C" __attribute__((visibility("default")))

extern char** environ;

namespace {

namespace fs = std::filesystem;

enum Result : int { kSuccess = 0, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };

using Headers = std::map<std::string, std::string>;

struct Program {
  std::string source, log, code;
  Headers headers;
};

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool run(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;  // what the process preloads is not for the compiler
  for (char** e = environ; *e != nullptr; e++)
    if (std::strncmp(*e, "LD_PRELOAD=", 11) != 0) environment.push_back(*e);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> compiler(const fs::path& folder) {
  // As the stand-in plugin is compiled; a misaligned access ends the process, as it would the device's context.
  return {STANDIN_CXX,
          "-std=c++20",
          "-O1",
          "-fPIC",
          "-w",
          "-ffp-contract=off",
          "-fsanitize=alignment",
          "-fsanitize-undefined-trap-on-error",
          "-DPERIGEE_CUDA_EMULATED",
          "-I" + folder.string(),
          "-I" STANDIN_FOLDER,
          "-isystem" STANDIN_CUDA};
}

std::string own_library() {
  Dl_info info;
  if (dladdr(&gridDim, &info) == 0) standin::mistake("the stand-in does not find its own library");
  return info.dli_fname;
}

// Folders with the headers of programs, compiled once a process, which ends with them.
class Folders {
 public:
  Folders() {
    std::string name = (fs::temp_directory_path() / "perigee-nvrtc-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) standin::mistake("no folder for generated kernels: " + name);
    root_ = name;
    std::atexit([] { fs::remove_all(instance().root_); });
  }
  static Folders& instance() {
    static auto& folders = *new Folders;
    return folders;
  }
  // Empty, with what the compiler says in `log`, where the headers cannot be compiled.
  fs::path find(const Headers& headers, std::string& log) {
    std::lock_guard lock(mutex_);
    auto known = folders_.find(headers);
    if (known != folders_.end()) return known->second;
    const fs::path folder = root_ / std::to_string(folders_.size());
    std::string prelude = "#include <emulator.hpp>\n#include <library.hpp>\n";
    for (const auto& [name, text] : headers) {
      if (name.find('.') == std::string::npos) continue;  // a standard one
      write_file(folder / name, text);
      prelude += "#include \"" + name + "\"\n";
    }
    write_file(folder / "prelude.hpp", prelude);
    auto words = compiler(folder);
    for (const char* word : {"-x", "c++-header", "-o"}) words.emplace_back(word);
    words.push_back((folder / "prelude.hpp.gch").string());
    words.push_back((folder / "prelude.hpp").string());
    if (!run(words, folder / "log")) {
      log = read_file(folder / "log");
      return {};
    }
    return folders_[headers] = folder;
  }
  fs::path next() {
    std::lock_guard lock(mutex_);
    return root_ / ("program" + std::to_string(programs_++));
  }

 private:
  std::mutex mutex_;
  fs::path root_;
  std::map<Headers, fs::path> folders_;
  uint64_t programs_ = 0;
};

// Each kernel gets a function that binds the arguments of a launch to it.
std::string with_binders(const std::string& source) {
  static const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\()");
  std::string text = source;
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
    const std::string name = (*at)[1];
    text += "extern \"C\" void standin_bind_" + name +
            "(void** arguments, std::function<void()>* body) { *body = standin::bind(" + name + ", arguments); }\n";
  }
  return text;
}

int copy_out(const std::string& text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return kSuccess;
}

}  // namespace

STANDIN_API const char* nvrtcGetErrorString(int status) {
  return status == kSuccess ? "NVRTC_SUCCESS" : status == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
STANDIN_API int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return kSuccess;
}
STANDIN_API int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 90, archs[1] = 100;
  return kSuccess;
}
STANDIN_API int nvrtcCreateProgram(Program** made, const char* source, const char*, int count,
                                   const char* const* headers, const char* const* names) {
  *made = new Program;
  (*made)->source = source;
  for (int i = 0; i < count; i++) (*made)->headers[names[i]] = headers[i];
  return kSuccess;
}
STANDIN_API int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}
STANDIN_API int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  bool contracts = true;
  for (int i = 0; i < count; i++) contracts = contracts && std::strcmp(options[i], "--fmad=false") != 0;
  if (contracts) return kInvalidOption;  // the bits of the plugin's own kernels need it
  const fs::path folder = Folders::instance().find(program->headers, program->log);
  if (folder.empty()) return kCompilation;
  const std::string base = Folders::instance().next().string();
  write_file(base + ".cpp", with_binders(program->source));
  auto words = compiler(folder);
  for (const char* word : {"-shared", "-include", "prelude.hpp", "-o"}) words.emplace_back(word);
  words.push_back(base + ".so");
  words.push_back(base + ".cpp");
  words.push_back(own_library());  // which has threadIdx and the like
  const bool done = run(words, base + ".log");
  program->log = read_file(base + ".log");
  if (done) program->code = standin::as_code(read_file(base + ".so"));
  for (const char* kind : {".cpp", ".so", ".log"}) fs::remove(base + kind);
  return done ? kSuccess : kCompilation;
}
STANDIN_API int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size();
  return kSuccess;
}
STANDIN_API int nvrtcGetProgramLog(Program* program, char* log) { return copy_out(program->log, log); }
STANDIN_API int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->code.size();
  return program->code.empty() ? kInvalidProgram : kSuccess;
}
STANDIN_API int nvrtcGetCUBIN(Program* program, char* code) { return copy_out(program->code, code); }
STANDIN_API int nvrtcGetPTXSize(Program* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
STANDIN_API int nvrtcGetPTX(Program* program, char* code) { return nvrtcGetCUBIN(program, code); }
