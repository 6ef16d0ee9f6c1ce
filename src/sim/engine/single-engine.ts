import type { Nanoseconds } from "../../core/clock.ts";
import { WarmpathError } from "../../core/errors.ts";
import type { Engine } from "./engine.ts";
import type { EngineFinish, EngineGrowth, EngineRequest, EngineSignal } from "./engine-request.ts";
import type { TimedKvEvent } from "./kv-event-log.ts";

/** Something a client does to an engine; a `look` only brings it up to date, as a router does before it decides. */
export type EngineInput =
  | { readonly kind: "submit"; readonly atNs: Nanoseconds; readonly request: EngineRequest }
  | { readonly kind: "cancel"; readonly atNs: Nanoseconds; readonly key: number }
  | { readonly kind: "look"; readonly atNs: Nanoseconds };

/** All that an engine let out. */
export interface EngineOutput {
  readonly firstTokens: readonly EngineSignal[];
  readonly growth: readonly EngineGrowth[];
  readonly finished: readonly EngineFinish[];
  readonly kvEvents: readonly TimedKvEvent[];
  /** KV events that were out at each `look`. */
  readonly seenKvEvents: readonly number[];
  readonly refused: readonly { readonly key: number; readonly reason: string }[];
}

/** The smallest driver: one engine and inputs in order of time, until all work is done. */
export function driveEngine(engine: Engine, inputs: readonly EngineInput[]): EngineOutput {
  const refused: { key: number; reason: string }[] = [];
  const seenKvEvents: number[] = [];
  let next = 0;
  let endNs: Nanoseconds | undefined;
  for (;;) {
    const inputNs = next < inputs.length ? inputs[next].atNs : Number.POSITIVE_INFINITY;
    if (endNs === undefined && inputNs === Number.POSITIVE_INFINITY) break;
    const nowNs = Math.min(endNs ?? Number.POSITIVE_INFINITY, inputNs);
    if (endNs === nowNs) {
      engine.endStep(nowNs);
      endNs = undefined;
    }
    for (; next < inputs.length && inputs[next].atNs === nowNs; next++) {
      const input = inputs[next];
      engine.advanceTo(nowNs);
      if (input.kind === "submit") {
        const reason = engine.submit(input.request, nowNs);
        if (reason !== undefined) refused.push({ key: input.request.key, reason });
      } else if (input.kind === "cancel") engine.cancel(input.key, nowNs);
      else seenKvEvents.push(engine.effects.kvEvents.length);
      if (engine.isStepping) endNs = engine.endNs;
      // What an input has cut short may end at this very moment.
      if (endNs === nowNs) {
        engine.endStep(nowNs);
        endNs = undefined;
      }
    }
    if (endNs === undefined) endNs = engine.beginStep(nowNs);
    if (endNs !== undefined && endNs <= nowNs) {
      throw new WarmpathError("WP_INVALID_STATE", `a step that began at ${nowNs} ends at ${endNs}`);
    }
  }
  const { firstTokens, growth, finished, kvEvents } = engine.effects;
  return { firstTokens, growth, finished, kvEvents, seenKvEvents, refused };
}
