#!/bin/sh
# Empties all caches by starting every worker anew.
set -eu
. "$(dirname "$0")/graph.sh"
kubectl --namespace "$NAMESPACE" delete pods --selector "$WORKERS" --wait=true
wait_until_ready
