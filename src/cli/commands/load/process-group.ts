import { type ChildProcess, fork } from "node:child_process";
import { ACCOUNTS, type Account, type Accounting } from "../../../core/accounts.ts";
import type { Nanoseconds } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import { type ClientHealth, worstHealth } from "../../../loadgen/client-health.ts";
import { LoadTotals } from "../../../loadgen/load-totals.ts";
import { RunClock } from "../../../loadgen/run-clock.ts";
import type { LoadRun, LoadSummary } from "../../../loadgen/types.ts";
import { RollingMetrics, type RollingSlice, type RollingSnapshot } from "../../../measure/rolling/rolling-metrics.ts";
import { processFile } from "../gateway/process-roles.ts";
import { initialConcurrency, type PreparedLoad, shareOf } from "./compose.ts";
import type { LoadNews, LoadOrder, LoadReport } from "./process-messages.ts";

export interface ProcessGroupOptions {
  readonly processes: number;
  /** Where the records of the n-th process go; nowhere if undefined. */
  readonly recordsPath: (index: number) => string | undefined;
  readonly onSlice: (slice: RollingSlice) => void;
  /** Told of a process that ended before its time. */
  readonly onLost: (index: number, how: string) => void;
}

interface Member {
  readonly child: ChildProcess;
  news: LoadNews | undefined;
  isOver: boolean;
}

/** Time for every process to get ready for the common start. */
const START_DELAY_NS = 300_000_000n;

/** Starts processes that share a load; resolves when all of them run. */
export async function startProcessGroup(prepared: PreparedLoad, options: ProcessGroupOptions): Promise<ProcessGroup> {
  const file = processFile(new URL("./load-process.ts", import.meta.url));
  const children = Array.from({ length: options.processes }, () => fork(file, []));
  try {
    await Promise.all(children.map(isReady));
  } catch (error) {
    for (const child of children) child.kill("SIGKILL");
    throw error;
  }
  return new ProcessGroup(prepared, options, children);
}

/** A load of several processes, which looks like one of a single process. */
export class ProcessGroup implements LoadRun {
  readonly finished: Promise<LoadSummary>;
  readonly #members: readonly Member[];
  readonly #options: ProcessGroupOptions;
  readonly #clock: RunClock;
  readonly #metrics = new RollingMetrics();
  readonly #drainMs: number;
  #concurrency: number | undefined;
  #resolve: (summary: LoadSummary) => void = () => {};

  constructor(prepared: PreparedLoad, options: ProcessGroupOptions, children: readonly ChildProcess[]) {
    const origin = process.hrtime.bigint() + START_DELAY_NS;
    this.#clock = new RunClock(origin);
    this.#options = options;
    this.#drainMs = prepared.settings.drain * 1000;
    this.#concurrency = initialConcurrency(prepared);
    this.finished = new Promise((resolve) => (this.#resolve = resolve));
    this.#members = children.map((child) => ({ child, news: undefined, isOver: false }));
    for (const [index, member] of this.#members.entries()) {
      member.child.on("message", (report: LoadReport) => this.#heard(index, member, report));
      member.child.once("exit", (code, signal) => this.#exited(index, member, String(signal ?? code)));
      const recordsPath = options.recordsPath(index);
      const originHrtimeNs = String(origin);
      order(member, { kind: "start", prepared, index, of: children.length, originHrtimeNs, recordsPath });
    }
  }

  get concurrency(): number | undefined {
    return this.#concurrency;
  }

  /** Follow-ups that user models failed to give. */
  get userFailures(): number {
    return this.#members.reduce((sum, { news }) => sum + (news?.userFailures ?? 0), 0);
  }

  nowNs(): Nanoseconds {
    return this.#clock.nowNs();
  }

  setConcurrency(concurrency: number): void {
    if (this.#concurrency === undefined) {
      throw new WarmpathError("WP_INVALID_STATE", "this load follows a schedule; it has no concurrency");
    }
    this.#concurrency = concurrency;
    for (const [index, member] of this.#members.entries()) {
      order(member, { kind: "concurrency", concurrency: shareOf(concurrency, { index, of: this.#members.length }) });
    }
  }

  stop({ drainMs = this.#drainMs }: { readonly drainMs?: number } = {}): Promise<LoadSummary> {
    for (const member of this.#members) order(member, { kind: "stop", drainMs });
    return this.finished;
  }

  rolling(): RollingSnapshot {
    return this.#metrics.read(this.nowNs());
  }

  accounts(): Accounting {
    const sums: Record<Account | "offered", number> = { ...new LoadTotals().accounts() };
    for (const { news } of this.#members) {
      if (news === undefined) continue;
      for (const key of ["offered", ...ACCOUNTS] as const) sums[key] += news.accounts[key];
    }
    return sums;
  }

  clientHealth(): ClientHealth {
    return worstHealth(this.#members.flatMap(({ news }) => news?.health ?? []));
  }

  summary(): LoadSummary {
    const totals = new LoadTotals();
    let seconds = 0;
    for (const { news } of this.#members) {
      if (news === undefined) continue;
      totals.absorb(news.totals);
      seconds = Math.max(seconds, news.seconds);
    }
    return { seconds, totals, health: this.clientHealth() };
  }

  #heard(index: number, member: Member, report: LoadReport): void {
    if (report.kind === "failed") this.#options.onLost(index, report.message);
    if (report.kind !== "news" && report.kind !== "finished") return;
    const { news } = report;
    member.news = news;
    this.#metrics.setInFlightElsewhere(index, news.inFlight);
    for (const slice of news.slices) {
      this.#metrics.absorb(slice);
      this.#options.onSlice(slice);
    }
    if (report.kind === "finished") this.#over(member);
  }

  #exited(index: number, member: Member, how: string): void {
    if (member.isOver) return;
    this.#options.onLost(index, `ended with ${how}`);
    this.#metrics.setInFlightElsewhere(index, { count: 0, oldestNs: undefined });
    if (member.news !== undefined) member.news = withUnfinished(member.news);
    this.#over(member);
  }

  #over(member: Member): void {
    member.isOver = true;
    if (this.#members.every(({ isOver }) => isOver)) this.#resolve(this.summary());
  }
}

/** What a lost process had under way when it last told stays unfinished. */
function withUnfinished(news: LoadNews): LoadNews {
  const { accounts } = news;
  return { ...news, totals: { ...news.totals, accounts } };
}

function order(member: Member, message: LoadOrder): void {
  if (member.child.connected) member.child.send(message);
}

function isReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve());
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new WarmpathError("WP_INVALID_STATE", `a process of the load ended with ${code} at its start`)),
    );
  });
}
