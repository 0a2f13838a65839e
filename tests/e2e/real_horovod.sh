#!/bin/bash
# real_horovod.sh: Horovod for PyTorch from its source package, CPU operations by Gloo, for the long test beside this
# file. Prints the python that imports it as its last line; builds only where it is not there yet (ten minutes).
# HVDRUN_HOROVOD_DIR names another folder than ~/.cache/hvdrun-tests/horovod-VERSION.
set -euo pipefail
version=0.28.1
checkout=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
torch_python=$checkout/.venv/bin/python
dir=${HVDRUN_HOROVOD_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hvdrun-tests/horovod-$version}
venv=$dir/venv

[ -x "$torch_python" ] || { echo "real_horovod: no $torch_python with torch; make it with: make build" >&2; exit 1; }
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9  # two at once: the second waits, then finds it complete

# Built for one torch: another wheel has other symbols.
wanted="$version $("$torch_python" -c 'import sys, torch; print(torch.__version__, sys.prefix)')"
is_complete() {
  [ "$(cat "$dir/complete" 2>/dev/null)" = "$wanted" ] && "$venv/bin/python" -c 'import horovod.torch' 2>/dev/null
}

# Its own environment, which sees torch where it is: what Horovod needs does not get among the trainer's packages.
make_environment() {
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  local site
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$torch_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/torch.pth"
  "$venv/bin/pip" install --quiet --no-input 'setuptools<70' wheel packaging cloudpickle psutil pyyaml
}

# The package asks for C++14, torch's headers need C++17.
build() {
  local src=$dir/src
  rm -rf "$src"
  mkdir "$src"
  cd "$src"
  "$venv/bin/pip" download --quiet --no-deps --no-binary :all: --no-build-isolation "horovod==$version" -d .
  tar xzf "horovod-$version.tar.gz"
  cd "horovod-$version"
  sed -i 's/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD 17)/' CMakeLists.txt horovod/torch/CMakeLists.txt
  PATH=$venv/bin:$PATH HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
    HOROVOD_WITHOUT_MPI=1 HOROVOD_WITH_GLOO=1 MAKEFLAGS="${MAKEFLAGS:--j$(nproc)}" \
    "$venv/bin/pip" install --no-input --no-build-isolation --no-deps --verbose . >"$dir/build.log" 2>&1
  cd /
  rm -rf "$src"
}

if ! is_complete; then
  echo "real_horovod: building Horovod $version in $dir (ten minutes; build.log there)" >&2
  rm -f "$dir/complete"
  make_environment
  build || { echo "real_horovod: Horovod could not be built: $dir/build.log" >&2; exit 1; }
  echo "$wanted" >"$dir/complete"
  is_complete || { echo "real_horovod: what was built cannot be imported: $venv/bin/python -c 'import horovod.torch'" >&2; exit 1; }
fi
echo "$venv/bin/python"
