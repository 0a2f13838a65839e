#!/bin/bash
# install.sh PREFIX: the programs, the man page and the completion of build/ under PREFIX. The agent goes
# to lib/hvdrun, where hvdrun looks for it; nodes need nothing installed.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
prefix=$1
install -D -m 755 build/bin/hvdrun "$prefix/bin/hvdrun"
install -D -m 755 build/bin/hvdctl "$prefix/bin/hvdctl"
install -D -m 755 build/bin/hvd-agent "$prefix/lib/hvdrun/hvd-agent"
install -d "$prefix/share/man/man1"
gzip -9 -n -c build/docs/man/hvdrun.1 > "$prefix/share/man/man1/hvdrun.1.gz"
chmod 644 "$prefix/share/man/man1/hvdrun.1.gz"
install -D -m 644 build/docs/completion/hvdrun "$prefix/share/bash-completion/completions/hvdrun"
install -D -m 644 build/docs/completion/_hvdrun "$prefix/share/zsh/vendor-completions/_hvdrun"
install -D -m 644 build/docs/completion/hvdrun.fish "$prefix/share/fish/vendor_completions.d/hvdrun.fish"
