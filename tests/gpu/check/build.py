# SPDX-License-Identifier: Apache-2.0
"""Unpacks what gpu_prepare packed, and builds Perigee from nothing with it."""
import glob
import os
import shutil
import sys
import tarfile

import machine
import process

# What the parts run: Perigee, and the programs in C++ that CTest labels gpu; in a rehearsal the emulated device, too.
TARGETS, REHEARSED = ("perigee_runtime", "gpu_tests"), ("gpu_rehearsal",)


class Tree:
    """A folder of the check's own, with the unpacked packages, the carried build and the fresh one."""

    def __init__(self, root, work):
        self.root, self.work = root, work
        self.home = os.path.join(work, "build/tests/cuda/home")  # of the emulated device
        self.packages = os.path.join(work, "packages")
        self.carried = os.path.join(work, "carried")
        self.fresh = os.path.join(work, "build")
        self.has_packages = self._unpack("packages.tar.xz", self.packages)
        self.has_carried = self._unpack("build.tar.xz", self.carried)
        self._libraries_of_packages()

    def _unpack(self, name, folder):
        source = os.path.join(self.root, "deps", name)
        if not os.path.exists(source):
            return False
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with tarfile.open(source) as archive:
            archive.extractall(folder)
        return True

    def _libraries_of_packages(self):
        """Links to those that the machine lacks. Made once: programs are running while others are built."""
        known = machine.said_by("ldconfig", "-p") or machine.said_by("/sbin/ldconfig", "-p")
        self.run = os.path.join(self.work, "libraries")
        shutil.rmtree(self.run, ignore_errors=True)
        os.makedirs(self.run)
        for packed in glob.glob(os.path.join(self.packages, "usr/lib/x86_64-linux-gnu/*.so.*")):
            if "\t%s " % os.path.basename(packed) not in known:
                os.symlink(packed, os.path.join(self.run, os.path.basename(packed)))

    def environment(self):
        """For programs of Perigee's: libraries that the machine lacks, the machine's own first."""
        env = dict(os.environ)
        paths = [env.get("LD_LIBRARY_PATH", ""), self.run] + machine.library_folders()[0]
        env["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        # Behind the machine's own: CMake and ninja as Python packages; luajit of ours, for tests written in Lua.
        env["PATH"] = ":".join([env.get("PATH", "/usr/bin:/bin"), os.path.dirname(sys.executable),
                                os.path.join(self.packages, "usr/bin")])
        return env

    def _build_environment(self):
        env = self.environment()
        usr = os.path.join(self.packages, "usr")
        headers = [os.path.join(usr, "include")] if self.has_packages else []
        env["CPATH"] = ":".join(headers + machine.header_folders() + list(filter(None, [env.get("CPATH")])))
        if self.has_packages:
            env["PKG_CONFIG_SYSROOT_DIR"] = self.packages
            env["PKG_CONFIG_LIBDIR"] = os.path.join(usr, "lib/x86_64-linux-gnu/pkgconfig")
        return env

    def _options(self):
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DPERIGEE_TESTS=ON"]
        usr = os.path.join(self.packages, "usr")
        if self.has_packages:
            options += ["-DCMAKE_PREFIX_PATH=" + usr, "-DBoost_INCLUDE_DIR=" + usr + "/include"]
            if not shutil.which("pkg-config"):
                options.append("-DPKG_CONFIG_EXECUTABLE=" + self._pkgconf())
        nvcc = machine.find_nvcc()
        if nvcc:
            options += ["-DPERIGEE_CUDA=ON", "-DPERIGEE_NVCC=" + nvcc] + self._libraries(nvcc)
        return options

    @staticmethod
    def _libraries(nvcc):
        """Where CMake does not look: parts of the toolkit in Python packages. It finds headers by no CPATH."""
        options = []
        cudnn, include = machine.find_cudnn()
        if cudnn:
            options += ["-DPERIGEE_CUDNN=" + cudnn, "-DPERIGEE_CUDNN_INCLUDE=" + include]
            options += ["-DPERIGEE_CUDNN_HEADERS=" + include]  # for the stand-ins of tests/cuda
        headers = machine.header_folder("cuda_runtime_api.h")
        if headers:
            options += ["-DPERIGEE_CUDA_HEADERS=" + headers, "-DPERIGEE_CUDART_INCLUDE=" + headers]
        nccl = machine.header_folder("nccl.h")
        if nccl:
            options.append("-DPERIGEE_NCCL_INCLUDE=" + nccl)
        cublas = machine.library_path("libcublasLt.so.13")
        if cublas and not glob.glob(os.path.join(os.path.dirname(os.path.realpath(nvcc)), "../lib*/libcublasLt.so")):
            options.append("-DCUDA_cublasLt_LIBRARY=" + cublas)
        return options

    def _pkgconf(self):
        """A pkg-config that finds its own library."""
        path = os.path.join(self.work, "pkg-config")
        with open(path, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nLD_LIBRARY_PATH="%s/usr/lib/x86_64-linux-gnu" exec "%s/usr/bin/pkgconf" "$@"\n' %
                       (self.packages, self.packages))
        os.chmod(path, 0o755)
        return path

    def build(self, limit, width, rehearsal):
        """From nothing; answers the outcomes of configuring and building."""
        targets = TARGETS + (REHEARSED if rehearsal else ())
        shutil.rmtree(self.fresh, ignore_errors=True)
        env = self._build_environment()
        configured = process.run(["cmake", "-S", self.root, "-B", self.fresh, "-G", "Ninja"] + self._options(),
                                 limit, env, name="cmake")
        if not configured.ok:
            return [configured]
        built = process.run(["nice", "ninja", "-C", self.fresh, "-j", str(width), "-k", "0", *targets],
                            limit - configured.seconds, env, name="ninja")
        return [configured, built]
