#!/bin/sh
# install.sh [--from FOLDER] [--agent-only]: hvdrun's programs, units, user and configuration on this machine,
# where there is no Debian package; run again with newer programs it upgrades, and jobs run on.
# install.sh --uninstall: stops all jobs in order and takes away everything but /etc/hvdrun and the user.
#
#   --from FOLDER   where the built programs are (build/bin beside this folder)
#   --agent-only    hvd-agent alone: one static file, which needs no library of this machine
#   PREFIX=/usr/local    where programs, units and documents go (units of another PREFIX go to /etc)
#   DESTDIR=             in front of every path, for those who make packages: no user, nothing is started
set -eu

here=$(cd "$(dirname "$0")" && pwd)
PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
from=$here/../build/bin
programs='hvd-agent hvdrun hvdctl hvd-exporter'
units='hvd-agent.service hvd-agent.socket hvdrun.slice hvd-exporter.service'
wish=install

fail() {
  echo "install.sh: error: $1" >&2
  exit "${2:-1}"
}

while [ $# -gt 0 ]; do
  case $1 in
    --from)
      [ $# -ge 2 ] || fail "--from wants a folder behind it" 2
      from=$2
      shift
      ;;
    --agent-only) programs=hvd-agent ;;
    --uninstall) wish=uninstall ;;
    -h | --help)
      sed -n '2,10s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "$1 is no option; see install.sh --help" 2 ;;
  esac
  shift
done
# Where systemd looks.
case $PREFIX in
  /usr | /usr/local)
    unit_folder=$PREFIX/lib/systemd/system
    users_file=$PREFIX/lib/sysusers.d/hvdrun.conf
    folders_file=$PREFIX/lib/tmpfiles.d/hvdrun.conf
    ;;
  /*)
    unit_folder=/etc/systemd/system
    users_file=/etc/sysusers.d/hvdrun.conf
    folders_file=/etc/tmpfiles.d/hvdrun.conf
    ;;
  *) fail "PREFIX=$PREFIX is no absolute path" 2 ;;
esac
if [ -z "$DESTDIR" ] && [ "$(id -u)" != 0 ]; then
  fail "this needs root (or DESTDIR=FOLDER, to lay the files elsewhere)"
fi

# Its units would lie over those of the package, and --uninstall would stop the package's jobs.
if [ -z "$DESTDIR" ] && command -v dpkg-query >/dev/null &&
  dpkg-query -W -f '${db:Status-Status}' hvdrun 2>/dev/null | grep -qx installed; then
  fail "the Debian package hvdrun is installed here; use apt, or remove it first"
fi

has_systemd() { [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; }

# Into place in one step: a program may be running.
put() { # MODE FROM TO
  mkdir -p "$(dirname "$DESTDIR$3")"
  cp "$2" "$DESTDIR$3.new"
  chmod "$1" "$DESTDIR$3.new"
  mv -f "$DESTDIR$3.new" "$DESTDIR$3"
}

# Every program is tried before anything is changed.
check_programs() {
  for program in $programs; do
    if [ "$program" = hvd-exporter ] && [ ! -e "$from/$program" ]; then
      echo "install.sh: there is no hvd-exporter in $from (built without prometheus-cpp); going on without metrics"
      programs='hvd-agent hvdrun hvdctl'
      continue
    fi
    [ -f "$from/$program" ] || fail "there is no $program in $from; build it, or name the folder with --from"
    why=$("$from/$program" --version 2>&1) ||
      fail "$program does not start on this machine: $why (a node needs hvd-agent alone: --agent-only)"
  done
}

put_unit() { # NAME
  sed "s|/usr/bin/hvd-|$PREFIX/bin/hvd-|; s|/usr/share/doc/|$PREFIX/share/doc/|" "$here/systemd/$1" >"$scratch/unit"
  put 644 "$scratch/unit" "$unit_folder/$1"
}

make_user() {
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers "$users_file"
  elif ! getent passwd hvdrun >/dev/null; then
    getent group hvdrun >/dev/null || groupadd --system hvdrun
    useradd --system --gid hvdrun --no-create-home --home-dir / --shell /sbin/nologin \
      --comment "hvdrun metrics" hvdrun
  fi
}

install_all() {
  check_programs
  is_first=yes
  [ ! -e "$DESTDIR$PREFIX/bin/hvd-agent" ] || is_first=no
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  for program in $programs; do put 755 "$from/$program" "$PREFIX/bin/$program"; done
  for unit in $units; do
    if [ "$unit" != hvd-exporter.service ] || [ -e "$DESTDIR$PREFIX/bin/hvd-exporter" ]; then put_unit "$unit"; fi
  done
  put 644 "$here/systemd/sysusers.conf" "$users_file"
  put 644 "$here/systemd/tmpfiles.conf" "$folders_file"
  for document in "$here"/../docs/admin.md "$here"/../docs/tls.md; do
    if [ -f "$document" ]; then put 644 "$document" "$PREFIX/share/doc/hvdrun/${document##*/}"; fi
  done
  for example in "$here"/examples/*; do
    put 644 "$example" "$PREFIX/share/doc/hvdrun/examples/${example##*/}"
  done
  if [ ! -e "$DESTDIR/etc/hvdrun/agent.yaml" ]; then
    sed "s|/usr/share/doc/|$PREFIX/share/doc/|" "$here/agent.yaml" >"$scratch/agent.yaml"
    put 644 "$scratch/agent.yaml" /etc/hvdrun/agent.yaml
  fi
  [ -d "$DESTDIR/etc/hvdrun/tls" ] || mkdir -m 0700 "$DESTDIR/etc/hvdrun/tls"
  [ -z "$DESTDIR" ] || return 0
  make_user
  mkdir -p /run/hvdrun
  if has_systemd; then
    systemctl daemon-reload
    if [ $is_first = no ]; then
      for unit in hvd-agent.service hvd-exporter.service; do
        systemctl try-restart "$unit" 2>/dev/null || true
      done
    fi
  fi
  if [ $is_first = yes ]; then
    cat <<TEXT
install.sh: installed below $PREFIX; nothing is started yet. Write /etc/hvdrun/agent.yaml, put the node's
certificates into /etc/hvdrun/tls (hvdctl ca issue --node NAME), then: systemctl enable --now hvd-agent
More: $PREFIX/share/doc/hvdrun/admin.md
TEXT
  fi
}

uninstall_all() {
  [ -e "$DESTDIR$PREFIX/bin/hvd-agent" ] ||
    fail "there is no $PREFIX/bin/hvd-agent; name the PREFIX that it was installed with"
  if has_systemd; then
    systemctl stop hvd-exporter.service hvd-agent.socket 2>/dev/null || true
    systemctl stop hvd-agent.service 2>/dev/null || true # it stops its jobs first
    systemctl stop hvdrun.slice 2>/dev/null || true      # those of an agent that was not running
    for unit in hvd-agent.service hvd-agent.socket hvd-exporter.service; do
      systemctl disable --quiet "$unit" 2>/dev/null || true
    done
  fi
  for program in hvd-agent hvdrun hvdctl hvd-exporter; do rm -f "$DESTDIR$PREFIX/bin/$program"; done
  for unit in $units; do rm -f "$DESTDIR$unit_folder/$unit"; done
  rm -f "$DESTDIR$users_file" "$DESTDIR$folders_file"
  rm -rf "$DESTDIR$PREFIX/share/doc/hvdrun"
  if has_systemd; then systemctl daemon-reload; fi
  [ -n "$DESTDIR" ] || rm -rf /run/hvdrun
  echo "install.sh: removed; /etc/hvdrun (configuration, certificates) and the user hvdrun stay"
}

"${wish}_all"
