# The deployment under test; sourced by the other hooks.
NAMESPACE="${NAMESPACE:-dynamo-ab}"
GRAPH="${GRAPH:-vllm-ab}"
KIND=dynamographdeployments.nvidia.com
WORKERS="${WORKER_SELECTOR:-nvidia.com/dynamo-graph-deployment-name=$GRAPH,nvidia.com/dynamo-component-type=worker}"
# Where the mode that was found is kept until it is put back.
MODE_BEFORE="${TMPDIR:-/tmp}/warmpath-$NAMESPACE-$GRAPH-router-mode"

graph() {
  kubectl --namespace "$NAMESPACE" get "$KIND" "$GRAPH" --output json | tr -d '\n'
}

router_mode() {
  graph | sed -nE 's/.*"name": *"DYN_ROUTER_MODE", *"value": *"([^"]*)".*/\1/p'
}

# Changes nothing but the value of DYN_ROUTER_MODE, whatever version of the API the deployment was written in.
set_router_mode() {
  graph | sed -E "s/(\"name\": *\"DYN_ROUTER_MODE\", *\"value\": *)\"[^\"]*\"/\1\"$1\"/" |
    kubectl --namespace "$NAMESPACE" replace --filename -
}

wait_until_ready() {
  kubectl --namespace "$NAMESPACE" wait "$KIND/$GRAPH" --for=condition=Ready --timeout=30m
}
