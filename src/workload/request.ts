import type { Nanoseconds } from "../core/clock.ts";
import type { Prompt, Segment } from "./prompt.ts";

/** One request, as plain data: the same for every policy that is compared on the workload. */
export interface WorkloadRequest {
  /** Unique in the workload; the same request has the same id under every policy. */
  readonly id: number;
  /** Number of the session it belongs to, and its turn there from 0. */
  readonly session: number;
  readonly turn: number;
  readonly isLastTurn: boolean;
  /** What a client would send to keep the session together. */
  readonly sessionName: string;
  /** When the client means to send it. */
  readonly arrivalNs: Nanoseconds;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly prompt: Prompt;
  /** The segment that the answer becomes: prompt and answer are how the next turn begins. */
  readonly answerId: number;
}

/** How a turn's prompt comes about: its segments follow the history, or it is given whole. */
export type TurnPrompt =
  | { readonly kind: "append"; readonly segments: readonly Segment[] }
  | { readonly kind: "whole"; readonly prompt: Prompt };

/** One turn as it is planned, before anybody knows when it will be sent. */
export interface TurnScript {
  readonly requestId: number;
  readonly prompt: TurnPrompt;
  readonly outputTokens: number;
  readonly answerId: number;
  /** Time between the end of the turn before and this one. */
  readonly thinkNs: Nanoseconds;
}

/** A session as it is planned; a single request is a session of one turn. */
export interface SessionScript {
  readonly session: number;
  readonly name: string;
  /** When it begins, where the workload says so; else its driver decides. */
  readonly startNs?: Nanoseconds;
  readonly turns: readonly TurnScript[];
}

/** Where sessions come from: the n-th is the same whoever asks and whenever; undefined after the last. */
export interface SessionSupply {
  session(ordinal: number): SessionScript | undefined;
}

/** How a request ended, for whoever decides what is sent next. */
export interface RequestEnd {
  readonly nowNs: Nanoseconds;
  readonly completed: boolean;
  /** What was really produced, where that differs from the plan. */
  readonly outputTokens?: number;
}

/**
 * What a driver asks for the next request, in virtual or wall time. The driver waits until `nextDueNs`, takes the
 * request, sends it, and reports its end, which may make another one due.
 */
export interface WorkloadSource {
  /** When the next request is due; Infinity while none is. */
  nextDueNs(): Nanoseconds;
  /** Takes the request that is due next. */
  take(): WorkloadRequest;
  ended(request: WorkloadRequest, end: RequestEnd): void;
  /** Planned turns that were never sent, because a turn before them failed or their client left. */
  readonly abandonedTurns: number;
}
