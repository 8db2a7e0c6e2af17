# SPDX-License-Identifier: Apache-2.0
"""What machine this is, and where CUDA's libraries lie on it. They may be a toolkit's or those of Python packages."""
import ctypes
import datetime
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

# What the plugin links, and what cuDNN loads when it compiles a plan at run time.
LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13")
NCCL = "libnccl.so.2"  # the plugin nccl opens it; without it there is no such plugin
LIBRARY_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib")
HEADERS = ("cuda_runtime_api.h", "cublasLt.h")  # of a toolkit, or of packages; cuDNN's are looked for with its library
SYSTEM_HEADERS = ("/usr/include", "/usr/include/x86_64-linux-gnu")
SYSTEM_LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def find_beside_python(name):
    """CMake and ninja may be Python packages, too."""
    return shutil.which(name) or shutil.which(name, path=os.path.dirname(sys.executable)) or name


def said_by(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _installed():
    """Toolkits, and Python packages that hold parts of one."""
    roots = sorted(glob.glob("/usr/local/cuda*"), reverse=True)
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        roots += sorted(glob.glob(os.path.join(place, "cu13*"))) + sorted(glob.glob(os.path.join(place, "*")))
    return roots


def find_tool(name):
    """A tool of the toolkit, which need not be on the path."""
    places = [os.path.join(root, kind) for root in _installed() for kind in ("bin", "compute-sanitizer")]
    return shutil.which(name) or next((os.path.join(p, name) for p in places
                                       if os.access(os.path.join(p, name), os.X_OK)), None)


def find_nvcc():
    return find_tool("nvcc")


def _roots():
    nvcc = find_nvcc()
    return ([os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []) + _installed()


def _folders(kinds, system):
    found = [os.path.join(root, kind) for root in _roots() for kind in kinds]
    return [folder for folder in found + system if os.path.isdir(folder)]


def library_folders():
    """Folders that hold the libraries which the loader would not find by itself; and what is not anywhere."""
    known, folders, missing = said_by("ldconfig", "-p") or said_by("/sbin/ldconfig", "-p"), [], []
    places = _folders(LIBRARY_FOLDERS, [SYSTEM_LIBRARIES])
    cudnn, _ = find_cudnn()  # the one that it is built with: another might be older
    if cudnn and os.path.dirname(cudnn) != SYSTEM_LIBRARIES:
        folders.append(os.path.dirname(cudnn))
    for name in (*LIBRARIES, NCCL):
        if any(os.path.exists(os.path.join(folder, name)) for folder in folders):
            continue
        if re.search(r"^\s*%s " % re.escape(name), known, re.M):
            continue
        place = next((p for p in places if os.path.exists(os.path.join(p, name))), None)
        if not place:
            if name != NCCL:
                missing.append(name)
        elif place not in folders:
            folders.append(place)
    return folders, missing


def library_path(name):
    """The file to link, by its versioned name: a Python package has no other."""
    places = library_folders()[0] + _folders(LIBRARY_FOLDERS, [SYSTEM_LIBRARIES])
    return next((os.path.join(p, name) for p in places if os.path.exists(os.path.join(p, name))), None)


def header_folder(name):
    places = _folders(("include", "targets/x86_64-linux/include"), list(SYSTEM_HEADERS))
    return next((p for p in places if os.path.exists(os.path.join(p, name))), None)


def header_folders():
    """Of HEADERS, where compilers do not look by themselves."""
    found = dict.fromkeys(map(header_folder, HEADERS))
    return [folder for folder in found if folder and folder not in SYSTEM_HEADERS]


def find_cudnn():
    """cuDNN 9's library and the folder of its headers, of one place; None, None: there is no place with both. A Python
    package has its library under a versioned name alone."""
    places = [(os.path.join(root, lib), os.path.join(root, include)) for root in _roots()
              for lib in LIBRARY_FOLDERS for include in ("include", "targets/x86_64-linux/include")]
    places += [(SYSTEM_LIBRARIES, include) for include in SYSTEM_HEADERS]
    for folder, include in places:
        library = next((os.path.join(folder, name) for name in ("libcudnn.so", "libcudnn.so.9")
                        if os.path.exists(os.path.join(folder, name))), None)
        if library and os.path.exists(os.path.join(include, "cudnn_version.h")):
            return library, include
    return None, None


def _cudnn_version():
    path = library_path("libcudnn.so.9")
    try:
        number = ctypes.CDLL(path).cudnnGetVersion() if path else 0
    except OSError:
        number = 0
    return "%d.%d.%d" % (number // 10000, number // 100 % 100, number % 100) if number else "not found"


def commit_of(root):
    """Named by PERIGEE_COMMIT, by git where there is one, or by the folder that gpu_prepare made."""
    commit = os.environ.get("PERIGEE_COMMIT") or said_by("git", "-C", root, "rev-parse", "--short=10", "HEAD")
    if commit:
        return commit
    path = os.path.join(root, "deps", "commit")
    if not os.path.exists(path):
        return "unknown"
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def describe(root, python):
    """A row a fact. No host name, no paths: the report is committed."""
    facts = {"date": datetime.date.today().isoformat(), "commit": commit_of(root)}
    smi = said_by(shutil.which("nvidia-smi") or "/usr/local/nvidia/bin/nvidia-smi",
                  "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader").splitlines()
    names = [[cell.strip() for cell in line.split(",")] for line in smi]
    facts["gpu"] = names[0][0] if names else "none"
    facts["gpus"] = len(names)
    facts["driver"] = names[0][1] if names else "none"
    facts["memory"] = names[0][2] if names else ""
    nvcc = find_nvcc()
    release = re.search(r"release ([\d.]+), V([\d.]+)", said_by(nvcc, "--version")) if nvcc else None
    facts["nvcc"] = release.group(2) if release else "not found"
    facts["cudnn"] = _cudnn_version()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        facts["processor"] = (re.search(r"model name\s*:\s*(.*)", file.read()) or ["", "unknown"])[1]
    facts["cores"] = len(os.sched_getaffinity(0))
    facts["compiler"] = (said_by("g++", "--version").splitlines() or ["not found"])[0]
    cmake = said_by(find_beside_python("cmake"), "--version").splitlines() or ["not found"]
    facts["cmake"] = cmake[0].replace("cmake version ", "")
    facts["pytorch"] = said_by(python, "-c", "import importlib.metadata as m; print(m.version('torch'))") or "not found"
    return facts
