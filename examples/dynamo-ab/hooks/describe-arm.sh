#!/bin/sh
# What is deployed, so that the two arms can be shown to differ in the router's mode alone.
set -eu
. "$(dirname "$0")/graph.sh"
kubectl --namespace "$NAMESPACE" get "$KIND" "$GRAPH" --output 'jsonpath={.spec}'
