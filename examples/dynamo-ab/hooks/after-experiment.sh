#!/bin/sh
# Puts the mode back that was found before the first arm.
set -eu
. "$(dirname "$0")/graph.sh"
[ -e "$MODE_BEFORE" ] || exit 0
set_router_mode "$(cat "$MODE_BEFORE")"
rm "$MODE_BEFORE"
echo "$GRAPH routes by $(router_mode) again"
