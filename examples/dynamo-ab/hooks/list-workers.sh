#!/bin/sh
# One line for each worker that is ready: its name, and what changes when it restarts.
set -eu
. "$(dirname "$0")/graph.sh"
kubectl --namespace "$NAMESPACE" get pods --selector "$WORKERS" --output \
  'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}/{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}{"\n"}{end}' |
  awk '$3 == "true" { print $1, $2 }'
