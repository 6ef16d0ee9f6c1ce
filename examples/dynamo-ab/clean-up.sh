#!/bin/sh
# Takes the graph and the load away. The model cache, the results and the namespace stay, unless asked: ./clean-up.sh --all
set -eu
namespace=${NAMESPACE:-dynamo-ab}
graph=${GRAPH:-vllm-ab}

kubectl --namespace "$namespace" delete dynamographdeployment "$graph" --ignore-not-found --wait
kubectl --namespace "$namespace" delete job warmpath-benchmark --ignore-not-found
if [ "${1:-}" = "--all" ]; then
  kubectl delete namespace "$namespace" --ignore-not-found
fi
