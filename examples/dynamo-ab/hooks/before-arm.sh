#!/bin/sh
# Switches the router, and restarts the workers: they would keep their caches, and the second arm would begin warm.
set -eu
. "$(dirname "$0")/graph.sh"
case "$WARMPATH_POLICY" in
  kv-cost) mode=kv ;;
  round-robin | random | least-loaded | power-of-two) mode="$(dynamo_mode "$WARMPATH_POLICY")" ;;
  *) echo "Dynamo has no router for $WARMPATH_POLICY" >&2; exit 1 ;;
esac
found="$(router_mode)"
if [ -z "$found" ]; then
  echo "$GRAPH does not set DYN_ROUTER_MODE on its frontend; set it once, to any mode" >&2
  exit 1
fi
[ -e "$MODE_BEFORE" ] || echo "$found" > "$MODE_BEFORE"
set_router_mode "$mode"
sh "$(dirname "$0")/restart-workers.sh"
echo "$GRAPH routes by $mode (before: $found)"
