import { setTimeout as timer } from "node:timers/promises";
import { WarmpathError } from "../../../../core/errors.ts";
import { askForModel, type ModelsAnswer } from "../../../../loadgen/models.ts";

const LOOK_MS = 250;
/** Long enough for an endpoint that is just being restarted, short enough to be told of a wrong address. */
const UNREACHABLE_SECONDS = 3;
/** Answers of the client's making that say "later": request timeout, too early, too many requests. */
const LATER: ReadonlySet<number> = new Set([408, 425, 429]);

/** An endpoint to be waited for. */
export interface ModelWait {
  readonly url: string;
  /** How long it may take where something is on its way. */
  readonly seconds: number;
  /** Whether somebody was asked to start it, so that nobody need be there yet. */
  readonly isBeingStarted: boolean;
  readonly signal: AbortSignal;
  /** Told once that there is a wait, and why. */
  readonly say: (line: string) => void;
  readonly ask?: () => Promise<ModelsAnswer>;
  readonly clock?: WaitClock;
}

/** The time, and how some of it passes. */
export interface WaitClock {
  nowMs(): number;
  delay(ms: number, signal: AbortSignal): Promise<void>;
}

const WALL_CLOCK: WaitClock = {
  nowMs: () => performance.now(),
  delay: (ms, signal) => timer(ms, undefined, { signal }).catch(() => {}),
};

/** Waits until an endpoint serves a model; rejects with the last complaint when more patience would not help. */
export async function waitForModel(wait: ModelWait): Promise<void> {
  const { url, signal, say, clock = WALL_CLOCK } = wait;
  const ask = wait.ask ?? (() => askForModel(url, process.env["WARMPATH_API_KEY"]));
  const startedMs = clock.nowMs();
  let isTold = false;
  while (!signal.aborted) {
    const answer = await ask();
    if (answer.model !== undefined) return;
    const seconds = patienceSeconds(answer.status, wait);
    if (clock.nowMs() - startedMs >= seconds * 1000) {
      throw new WarmpathError("WP_INVALID_INPUT", answer.problem, { cause: answer.cause });
    }
    if (!isTold) say(`waiting for ${url}, at most ${seconds} s: ${answer.problem}`);
    isTold = true;
    await clock.delay(LOOK_MS, signal);
  }
}

/** How long an endpoint may go on to answer like this. */
function patienceSeconds(status: number | undefined, { seconds, isBeingStarted }: ModelWait): number {
  if (status === undefined) return isBeingStarted ? seconds : Math.min(seconds, UNREACHABLE_SECONDS);
  // What stands in front of an endpoint does not know it before it is started.
  const isFinal = status >= 400 && status < 500 && !LATER.has(status) && !(status === 404 && isBeingStarted);
  return isFinal ? 0 : seconds;
}
