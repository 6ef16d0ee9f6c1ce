import { type EventLoopUtilization, type IntervalHistogram, monitorEventLoopDelay, performance } from "node:perf_hooks";
import { NS_PER_MS, type Nanoseconds } from "../core/clock.ts";
import { DurationHistogram } from "../measure/duration-histogram.ts";

/**
 * From where on the client measures itself. Sending 50 ms late shows in any TTFT; a loop that is 20 ms late in one of a
 * hundred moments stamps chunks as late as that; a loop that is busy for 70 % of the time has no room for a burst.
 */
export const HEALTH_LIMITS: Readonly<Record<keyof HealthFigures, number>> = {
  scheduleLagP99Ms: 50,
  loopDelayP99Ms: 20,
  loopUtilisation: 0.7,
};

/** What is judged of a stretch of time. */
export interface HealthFigures {
  /** How late requests were handed to the connection, after their intended time. */
  readonly scheduleLagP99Ms: number;
  /** How late timers rang: as late as chunks may have been stamped. */
  readonly loopDelayP99Ms: number;
  /** Share of the time in which the event loop did something. */
  readonly loopUtilisation: number;
}

/** `bottleneck`: the client was too slow for what it measured; `unknown`: it has not run long enough to say. */
export type HealthVerdict = "ok" | "bottleneck" | "unknown";

/** Whether the figures of a run are those of the server or of the client. */
export interface ClientHealth extends HealthFigures {
  readonly verdict: HealthVerdict;
  /** What passed a limit, over the whole run or in a part of it; a run that is `ok` as a whole may have had a hiccup. */
  readonly reasons: readonly string[];
  readonly scheduleLagMaxMs: number;
  readonly loopDelayMaxMs: number;
  /** How much of the run was judged, and how much of that the client was the bottleneck. */
  readonly judgedSeconds: number;
  readonly bottleneckSeconds: number;
  /** The last few seconds; undefined before they are over. */
  readonly recent: RecentHealth | undefined;
}

/** The last period that is over, with what passed a limit in it. */
export interface RecentHealth extends HealthFigures {
  readonly verdict: Exclude<HealthVerdict, "unknown">;
  readonly reasons: readonly string[];
}

const PERIOD_MS = 5000;
const RESOLUTION_MS = 5;
/** A hiccup is no bottleneck, such as the burst of a hundred conversations that begin at once: this share may be bad. */
const TOLERATED_SHARE = 0.1;

/** Watches this process while it makes load: in periods, so that a bad minute does not vanish in a good hour. */
export class ClientHealthMonitor {
  readonly #lags = { all: new DurationHistogram(), period: new DurationHistogram() };
  readonly #delays: { readonly all: IntervalHistogram; readonly period: IntervalHistogram } = {
    all: monitorEventLoopDelay({ resolution: RESOLUTION_MS }),
    period: monitorEventLoopDelay({ resolution: RESOLUTION_MS }),
  };
  readonly #atStart: EventLoopUtilization = performance.eventLoopUtilization();
  readonly #timer: NodeJS.Timeout;
  #atPeriod: EventLoopUtilization = this.#atStart;
  #periods = 0;
  #badPeriods = 0;
  #recent: HealthFigures | undefined;
  #stopped: ClientHealth | undefined;

  constructor() {
    this.#delays.all.enable();
    this.#delays.period.enable();
    this.#timer = setInterval(() => this.#endPeriod(), PERIOD_MS).unref();
  }

  /** A request was handed to the connection so long after it was due. */
  sent(lagNs: Nanoseconds): void {
    const late = Math.max(0, lagNs);
    this.#lags.all.add(late);
    this.#lags.period.add(late);
  }

  health(): ClientHealth {
    if (this.#stopped !== undefined) return this.#stopped;
    const whole = figures(this.#lags.all, this.#delays.all, this.#atStart);
    const lags = this.#lags.all;
    return judge({
      ...whole,
      scheduleLagMaxMs: lags.count === 0 ? 0 : lags.percentileNs(1) / NS_PER_MS,
      loopDelayMaxMs: lateMs(this.#delays.all.max),
      judgedSeconds: (this.#periods * PERIOD_MS) / 1000,
      bottleneckSeconds: (this.#badPeriods * PERIOD_MS) / 1000,
      recent: this.#recent && judgeRecent(this.#recent),
    });
  }

  /** Stops watching; what was seen stays. */
  stop(): void {
    this.#stopped ??= this.health();
    clearInterval(this.#timer);
    this.#delays.all.disable();
    this.#delays.period.disable();
  }

  #endPeriod(): void {
    this.#recent = figures(this.#lags.period, this.#delays.period, this.#atPeriod);
    this.#periods += 1;
    if (passed(this.#recent).length > 0) this.#badPeriods += 1;
    this.#lags.period.clear();
    this.#delays.period.reset();
    this.#atPeriod = performance.eventLoopUtilization();
  }
}

/** The health of several processes together: as good as the worst of them. */
export function worstHealth(all: readonly ClientHealth[]): ClientHealth {
  const most = (of: (one: ClientHealth) => number): number => Math.max(0, ...all.map(of));
  const recents = all.flatMap(({ recent }) => recent ?? []);
  const mostRecent = (of: keyof HealthFigures): number => Math.max(0, ...recents.map((one) => one[of]));
  const recent = {
    scheduleLagP99Ms: mostRecent("scheduleLagP99Ms"),
    loopDelayP99Ms: mostRecent("loopDelayP99Ms"),
    loopUtilisation: mostRecent("loopUtilisation"),
  };
  return judge({
    scheduleLagP99Ms: most((one) => one.scheduleLagP99Ms),
    loopDelayP99Ms: most((one) => one.loopDelayP99Ms),
    loopUtilisation: most((one) => one.loopUtilisation),
    scheduleLagMaxMs: most((one) => one.scheduleLagMaxMs),
    loopDelayMaxMs: most((one) => one.loopDelayMaxMs),
    judgedSeconds: most((one) => one.judgedSeconds),
    bottleneckSeconds: most((one) => one.bottleneckSeconds),
    recent: recents.length === 0 ? undefined : judgeRecent(recent),
  });
}

/** Judges what was seen. */
export function judge(seen: Omit<ClientHealth, "verdict" | "reasons">): ClientHealth {
  const { judgedSeconds, bottleneckSeconds } = seen;
  const isBad = bottleneckSeconds > TOLERATED_SHARE * judgedSeconds;
  const reasons = passed(seen);
  if (bottleneckSeconds > 0) reasons.push(`the client was too slow in ${bottleneckSeconds} of ${judgedSeconds} s`);
  return { ...seen, verdict: judgedSeconds === 0 ? "unknown" : isBad ? "bottleneck" : "ok", reasons };
}

function passed({ scheduleLagP99Ms, loopDelayP99Ms, loopUtilisation }: HealthFigures): string[] {
  const reasons: string[] = [];
  const limits = HEALTH_LIMITS;
  if (scheduleLagP99Ms > limits.scheduleLagP99Ms) {
    reasons.push(`requests left ${scheduleLagP99Ms.toFixed(0)} ms late (p99, limit ${limits.scheduleLagP99Ms})`);
  }
  if (loopDelayP99Ms > limits.loopDelayP99Ms) {
    reasons.push(`the event loop was ${loopDelayP99Ms.toFixed(0)} ms late (p99, limit ${limits.loopDelayP99Ms})`);
  }
  if (loopUtilisation > limits.loopUtilisation) {
    const [busy, limit] = [loopUtilisation, limits.loopUtilisation].map((share) => `${(100 * share).toFixed(0)} %`);
    reasons.push(`the event loop was busy for ${busy} of the time (limit ${limit})`);
  }
  return reasons;
}

function judgeRecent(seen: HealthFigures): RecentHealth {
  const reasons = passed(seen);
  return { ...seen, verdict: reasons.length > 0 ? "bottleneck" : "ok", reasons };
}

function figures(lags: DurationHistogram, delays: IntervalHistogram, since: EventLoopUtilization): HealthFigures {
  return {
    scheduleLagP99Ms: lags.count === 0 ? 0 : lags.percentileNs(0.99) / NS_PER_MS,
    loopDelayP99Ms: delays.count === 0 ? 0 : lateMs(delays.percentile(99)),
    loopUtilisation: performance.eventLoopUtilization(since).utilization,
  };
}

/** Node's histogram is of the times between two samples, which are meant to be `RESOLUTION_MS` apart. */
function lateMs(betweenSamplesNs: number): number {
  return Math.max(0, betweenSamplesNs / NS_PER_MS - RESOLUTION_MS);
}
