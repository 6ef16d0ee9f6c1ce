import type { Nanoseconds } from "../clock.ts";
import type { PolicySignal, SignalledLoad } from "../policy/types.ts";
import type { LoadColumns } from "../replica.ts";
import type { FirstToken, Growth } from "./load-description.ts";

/** Makes columns for `maxReplicas` replicas, all zero. */
export function createLoadColumns(maxReplicas: number): LoadColumns {
  return {
    inFlight: new Int32Array(maxReplicas),
    decoding: new Int32Array(maxReplicas),
    pendingPrefillTokens: new Float64Array(maxReplicas),
    pendingPrefillPairs: new Float64Array(maxReplicas),
    contextTokens: new Float64Array(maxReplicas),
    activeBlocks: new Int32Array(maxReplicas),
    newBlocks: new Int32Array(maxReplicas),
    batchSlots: new Int32Array(maxReplicas),
    kvBlocks: new Int32Array(maxReplicas),
    stepTokens: new Int32Array(maxReplicas),
  };
}

const MOST_COUNTED = 2 ** 31 - 1;

/** A capacity as a column has it: 0, unknown, for what is none, and no more than fits, lest it turn negative. */
export function capacityColumn(told: number | undefined): number {
  return told !== undefined && told >= 1 ? Math.min(Math.floor(told), MOST_COUNTED) : 0;
}

/** A replica's load as policies hear of it with a signal. */
function signalledLoad(columns: LoadColumns, replica: number): SignalledLoad {
  const { inFlight, decoding, contextTokens } = columns;
  return { inFlight: inFlight[replica], decoding: decoding[replica], contextTokens: contextTokens[replica] };
}

/** What policies hear of a first token. Field by field: copying the parts together takes longer than the rest of the call. */
export function firstTokenSignal(
  columns: LoadColumns,
  first: FirstToken,
  tokens: number,
  nowNs: Nanoseconds,
): PolicySignal {
  const { replica, sincePlacedNs, promptTokens, prefillTokens, meanwhile } = first;
  const load = signalledLoad(columns, replica);
  return { kind: "first-token", nowNs, replica, sincePlacedNs, tokens, promptTokens, prefillTokens, meanwhile, load };
}

/** What policies hear of more output. */
export function growthSignal(columns: LoadColumns, growth: Growth, nowNs: Nanoseconds): PolicySignal {
  const { replica, tokens, sinceLastNs, meanwhile } = growth;
  return { kind: "grew", nowNs, replica, tokens, sinceLastNs, meanwhile, load: signalledLoad(columns, replica) };
}

/** Zeroes all that is known of one replica, load and capacities alike. */
export function clearLoad(columns: LoadColumns, replica: number): void {
  columns.inFlight[replica] = 0;
  columns.decoding[replica] = 0;
  columns.pendingPrefillTokens[replica] = 0;
  columns.pendingPrefillPairs[replica] = 0;
  columns.contextTokens[replica] = 0;
  columns.activeBlocks[replica] = 0;
  columns.newBlocks[replica] = 0;
  columns.batchSlots[replica] = 0;
  columns.kvBlocks[replica] = 0;
  columns.stepTokens[replica] = 0;
}
