import type { StepShape, StepTimer } from "../timing/step-timer.ts";
import type { EngineFinish, EngineGrowth, EngineSignal } from "./engine-request.ts";
import type { TimedKvEvent } from "./kv-event-log.ts";
import type { EngineLimits, EngineProfile, SpeculationLimits } from "./profile.ts";

/** What times a step; a `SpeculativeTimer` does too. */
export interface StepDuration {
  stepPs(step: Readonly<StepShape>): number;
}

export interface EngineOptions {
  readonly profile: EngineProfile;
  readonly limits: EngineLimits;
  readonly timer: StepTimer;
  readonly speculation?: SpeculationLimits & { readonly timer: StepDuration; readonly seed: number };
  /** Name of this life of the engine, in its events. */
  readonly incarnation: string;
  readonly kvEvents: boolean;
  /** Whether decode steps run together where nothing can come in between; the results are the same. */
  readonly coalesce: boolean;
  /** When growth is reported: whenever a request's tokens fill a block, after every step, or never. */
  readonly growth: "block" | "step" | "none";
  readonly tokenTimes: boolean;
  /** Steps without a token after which the engine is taken to be stuck. */
  readonly mostFruitlessSteps?: number;
}

/** What came of the time an engine was run, in order of time; empty the arrays once they are read. */
export interface EngineEffects {
  readonly firstTokens: EngineSignal[];
  readonly growth: EngineGrowth[];
  readonly finished: EngineFinish[];
  readonly kvEvents: TimedKvEvent[];
}
