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

# Dynamo's name for a mode. The 0.9 releases write round_robin, later ones round-robin; MODE_SEPARATOR=_ or MODE_SEPARATOR=- settles it
# for an image whose tag does not say which it is.
dynamo_mode() {
  separator="${MODE_SEPARATOR:-}"
  if [ -z "$separator" ]; then
    if graph | grep -qE '"image": *"[^"]*:v?0\.9\.'; then separator=_; else separator=-; fi
  fi
  echo "$1" | tr -- - "$separator"
}

# Changes nothing but the value of DYN_ROUTER_MODE, whatever version of the API the deployment was written in.
set_router_mode() {
  graph | sed -E "s/(\"name\": *\"DYN_ROUTER_MODE\", *\"value\": *)\"[^\"]*\"/\1\"$1\"/" |
    kubectl --namespace "$NAMESPACE" replace --filename -
}

wait_until_ready() {
  kubectl --namespace "$NAMESPACE" wait "$KIND/$GRAPH" --for=condition=Ready --timeout=30m
}
