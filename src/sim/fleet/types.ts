import type { Accounting } from "../../core/accounts.ts";
import type { Nanoseconds } from "../../core/clock.ts";
import type { FeedCapabilities } from "../../core/kv-index/types.ts";
import type { RequestRecord } from "../../core/request-record.ts";
import type { Router } from "../../core/router.ts";
import type { WorkloadSource } from "../../workload/request.ts";
import type { EngineOptions } from "../engine/engine-options.ts";
import type { EngineStats } from "../engine/engine-stats.ts";
import { type ChannelOptions, IDEAL_CHANNEL } from "./signal-channel.ts";
import type { MeteredWindow, WorkerFigures } from "./window-meter.ts";

/** One simulated worker. */
export interface WorkerOptions {
  readonly name: string;
  readonly engine: Pick<EngineOptions, "profile" | "limits" | "timer" | "speculation">;
  /** When it dies: its requests fail, what it had cached is gone, and the router takes it out of the fleet. */
  readonly crashNs?: Nanoseconds;
}

/** How long things take outside the engines, and what gets lost on the way to the router. */
export interface FleetDelays {
  /** From the client to the router. */
  readonly clientToRouterNs: Nanoseconds;
  /** Parsing, tokenizing and deciding, per request and per prompt token. */
  readonly frontendNs: Nanoseconds;
  readonly frontendTokenNs: number;
  readonly routerToWorkerNs: Nanoseconds;
  /** From the engine's step to the client, for every token. */
  readonly workerToClientNs: Nanoseconds;
  readonly kvEvents: ChannelOptions;
  readonly firstToken: ChannelOptions;
  readonly growth: ChannelOptions;
  readonly ended: ChannelOptions;
}

/** Everything at once, and nothing lost. */
export const NO_DELAYS: FleetDelays = {
  clientToRouterNs: 0,
  frontendNs: 0,
  frontendTokenNs: 0,
  routerToWorkerNs: 0,
  workerToClientNs: 0,
  kvEvents: IDEAL_CHANNEL,
  firstToken: IDEAL_CHANNEL,
  growth: IDEAL_CHANNEL,
  ended: IDEAL_CHANNEL,
};

/** What a fleet needs of a router: a `Router` itself, or several behind one front (`split-router.ts`). */
export type FleetRouter = Pick<
  Router,
  | "addReplica"
  | "applyEvent"
  | "ended"
  | "firstToken"
  | "grew"
  | "offer"
  | "queued"
  | "removeReplica"
  | "replayUnavailable"
  | "restore"
  | "sent"
  | "tick"
>;

/** A fleet and what is asked of it. */
export interface FleetOptions {
  /** The router that decides; without replicas, since the fleet adds its own. */
  readonly router: FleetRouter;
  readonly workers: readonly WorkerOptions[];
  readonly source: WorkloadSource;
  readonly blockTokens: number;
  /** Everything at once and nothing lost unless told. */
  readonly delays?: Partial<FleetDelays>;
  /** What the workers can do about lost events; undefined leaves the router without events. */
  readonly feed?: FeedCapabilities;
  /** Of faults and of speculation; the workload and the router have seeds of their own. */
  readonly seed?: number;
  /**
   * What clients allow an answer to have. Not told, the router knows no bound, and an engine that admits to completion
   * plans with the true length.
   */
  readonly maxOutputTokens?: number;
  /** No request is sent from here on. */
  readonly offerUntilNs?: Nanoseconds;
  /** How long after the last request answers are waited for. */
  readonly drainNs?: Nanoseconds;
  /** The part of the run that `inWindow` of each worker is about. */
  readonly window?: MeteredWindow;
  /** After this the client gives up. */
  readonly timeoutNs?: Nanoseconds;
  /** Time between two ticks of the router. */
  readonly tickNs?: Nanoseconds;
  /** False runs every decode step by itself, for comparison. */
  readonly coalesce?: boolean;
  /** Whether records say when each token came. */
  readonly tokenTimes?: boolean;
}

/** One worker over the whole run. */
export interface WorkerSummary {
  readonly worker: string;
  /** Requests placed here, and their share of all placed. */
  readonly requests: number;
  readonly share: number;
  readonly busyShare: number;
  readonly inFlightMean: number;
  readonly inFlightMax: number;
  readonly queueMax: number;
  /** Blocks that requests hold over all, mean of busy time and peak. */
  readonly kvOccupancyMean: number;
  readonly kvOccupancyMax: number;
  readonly evictions: number;
  readonly preemptions: number;
  readonly engine: EngineStats;
  /** The same of the window alone, where one was given. */
  readonly inWindow?: WorkerFigures | undefined;
}

/** What a simulated run gives. */
export interface FleetResult {
  /** One per offered request, in the order they were sent. */
  readonly records: readonly RequestRecord[];
  readonly accounting: Accounting;
  readonly workers: readonly WorkerSummary[];
  readonly inFlightSpread: { readonly mean: number; readonly max: number };
  readonly endNs: Nanoseconds;
  /** Events of the simulation, engine steps, and KV events that reached the router or were lost. */
  readonly counts: {
    readonly events: number;
    readonly steps: number;
    readonly engineRuns: number;
    readonly kvEvents: number;
    readonly kvEventsLost: number;
    readonly signalsLost: number;
  };
}
