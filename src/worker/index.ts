/** A simulated worker: an engine under some clock, behind the OpenAI API. */
export { ConstantSpeedEngine, type ConstantSpeedEngineOptions } from "./constant-speed-engine.ts";
export type { Engine, EngineJob, EngineListener, EngineTicket } from "./engine.ts";
export { type FaultChanges, type Faults, FaultSwitches } from "./faults.ts";
export { SimulatedWorker, type SimulatedWorkerOptions } from "./server.ts";
export { type Timer, type Timers, WallTimers } from "./timers.ts";
export { TwinEngine, type TwinEngineOptions } from "./twin-engine.ts";
