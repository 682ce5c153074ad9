#!/usr/bin/env bash
# Measures what faithfulness checkers cost, against a local stub: benchmarks/peers/run.sh [PEER ...]
# Without a name: all. Makes one virtual environment per peer under $PEERS_VENVS (kept between runs), then runs
# bench.py. PEERS_PROFILES="flat real long garble http500" picks the profiles. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.." # requirements/ours.txt names the package by its folder
venvs=${PEERS_VENVS:-${TMPDIR:-/tmp}/peers-venvs}
peers=("$@")
[ ${#peers[@]} -gt 0 ] || peers=(ours haystack ragas deepeval trulens openevals nemo groundedness lettucedetect)
mkdir -p "$venvs"
for p in "${peers[@]}"; do
  reqs=$here/requirements
  also=(); [ "$p" = ours ] && also=(pyproject.toml)
  want=$(cat "$reqs/$p".*txt "${also[@]}" | sha256sum | cut -d" " -f1)
  [ "$(cat "$venvs/$p/.ready" 2>/dev/null || true)" = "$want" ] && continue
  echo "installing $p" >&2
  rm -rf "${venvs:?}/$p"
  python3 -m venv "$venvs/$p"
  "$venvs/$p/bin/pip" install -q -r "$reqs/$p.txt" >"$venvs/$p.log" 2>&1 || { tail -5 "$venvs/$p.log" >&2; exit 1; }
  if [ -f "$reqs/$p.nodeps.txt" ]; then
    "$venvs/$p/bin/pip" install -q --no-deps -r "$reqs/$p.nodeps.txt" >>"$venvs/$p.log" 2>&1
  fi
  echo "$want" >"$venvs/$p/.ready"
done
exec python3 "$here/bench.py" --venvs "$venvs" "${peers[@]}"
