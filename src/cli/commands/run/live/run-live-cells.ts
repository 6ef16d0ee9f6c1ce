import type { Cell } from "../../../../lab/experiment/cells.ts";
import type { Experiment } from "../../../../lab/experiment/types.ts";
import type { PreparedTrace } from "../../../../lab/experiment/workload.ts";
import { compareArms, differenceLines } from "../../../../lab/live/arm-differences.ts";
import { orderedCells } from "../../../../lab/live/cell-order.ts";
import { PromptLedger } from "../../../../lab/live/prompt-ledger.ts";
import type { LiveTarget, OpenCell } from "../../../../lab/live/target.ts";
import { checkEvents, checkHits, type WarmUpFacts } from "../../../../lab/preflight/checks.ts";
import { RecordsWriter } from "../../../../lab/results/records-file.ts";
import type { ArmFacts, Check } from "../../../../lab/results/types.ts";
import { type FinishedCell, recordsPart } from "../cell-job.ts";
import type { LiveFrame } from "../results-folder.ts";
import { driveCell } from "./drive-cell.ts";
import { measureLiveCell } from "./measure-live-cell.ts";

/** Cells to be run one after the other on a live target. */
export interface LiveRun {
  readonly experiment: Experiment;
  readonly trace: PreparedTrace | undefined;
  readonly cells: readonly Cell[];
  /** Those that an earlier run has finished. */
  readonly finished: readonly FinishedCell[];
  readonly target: LiveTarget;
  readonly recordsFolder: string | undefined;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  readonly onFinished: (cell: FinishedCell) => Promise<void>;
  readonly onFrame: (frame: LiveFrame) => void;
}

/** Arms that were not measured, and why. */
export type RefusedArms = ReadonlyMap<string, string>;

/** Runs live cells; whatever happens, the target is closed at the end. */
export async function runLiveCells(run: LiveRun): Promise<RefusedArms> {
  const live = new LiveCells(run);
  try {
    await live.run();
  } catch (error) {
    // What ended the run is what is thrown; that things could not be put back besides must be heard of as well.
    await run.target.close().catch((besides: unknown) => run.say(messageOf(besides)));
    throw error;
  }
  await run.target.close();
  return live.refused;
}

class LiveCells {
  readonly refused = new Map<string, string>();
  readonly #run: LiveRun;
  readonly #ledger = new PromptLedger();
  readonly #facts = new Map<string, ArmFacts>();

  constructor(run: LiveRun) {
    this.#run = run;
    for (const { index, sent, facts } of run.finished) {
      this.#ledger.add(run.cells[index].run, new Map(sent), () => false);
      if (facts !== undefined) this.#facts.set(facts.arm, facts);
    }
    this.#tellFrame();
  }

  async run(): Promise<void> {
    const { experiment, cells, finished, target, signal } = this.#run;
    const done = new Set(finished.map(({ index }) => index));
    const order = orderedCells(cells, experiment.live?.order ?? target.order).filter((index) => !done.has(index));
    for (const index of order) {
      const cell = cells[index];
      if (signal.aborted) return;
      if (!this.refused.has(cell.arm.name)) await this.#runCell(index, cell);
    }
  }

  async #runCell(index: number, cell: Cell): Promise<void> {
    const { experiment, trace, target, recordsFolder, signal, onFinished } = this.#run;
    const startedMs = performance.now();
    const open = await target.open(cell, signal);
    try {
      this.#learn(open.facts);
      if (signal.aborted || !this.#maySend(cell, open.facts.checks)) return;
      const before = await open.identities();
      let warmUpChecks: readonly Check[] = [];
      const mayGoOn = (facts: WarmUpFacts): boolean => {
        warmUpChecks = [checkEvents(facts), checkHits(facts)];
        return this.#maySend(cell, warmUpChecks);
      };
      const driven = await driveCell({ experiment, trace, cell, open, signal, mayGoOn });
      if (driven === undefined) return;
      const after = await identitiesAfter(open);
      const result = measureLiveCell({
        experiment,
        cell,
        open,
        driven,
        ledger: this.#ledger,
        warmUpChecks,
        before,
        after,
      });
      for (const reason of result.voided ?? []) this.#run.say(`${result.id}: void, ${reason}`);
      if (recordsFolder !== undefined) {
        const writer = new RecordsWriter(recordsPart(recordsFolder, index));
        await writer.write(result.id, driven.records);
        await writer.close();
      }
      const seconds = (performance.now() - startedMs) / 1000;
      await onFinished({ index, result, seconds, facts: open.facts, sent: [...driven.sent] });
    } finally {
      await open.close();
    }
  }

  /** An arm that lacks what it needs is not measured, unless the file wants it measured and labelled. */
  #maySend({ arm }: Cell, checks: readonly Check[]): boolean {
    const lacking = checks.find(({ status }) => status === "failed");
    if (lacking === undefined || this.#run.experiment.live?.unproven === "label") return true;
    this.refused.set(arm.name, lacking.detail);
    this.#run.say(`arm ${arm.name} is not measured: ${lacking.detail}`);
    return false;
  }

  /** Keeps what is known of an arm; of a new one, says in what it differs from the first. */
  #learn(facts: ArmFacts): void {
    if (this.#facts.has(facts.arm)) return;
    this.#facts.set(facts.arm, facts);
    const frame = this.#tellFrame();
    const own = frame.comparability?.differences.filter(({ arm }) => arm === facts.arm) ?? [];
    if (frame.comparability === undefined) return;
    for (const line of differenceLines({ ...frame.comparability, differences: own })) this.#run.say(line);
  }

  #tellFrame(): LiveFrame {
    const { experiment, onFrame } = this.#run;
    const arms = experiment.arms.flatMap(({ name }) => this.#facts.get(name) ?? []);
    const frame = arms.length === 0 ? {} : { arms, comparability: compareArms(arms, experiment.live?.differs) };
    onFrame(frame);
    return frame;
  }
}

/** A target that has gone away by the end of a cell has nobody left to ask. */
async function identitiesAfter(open: OpenCell): Promise<ReadonlyMap<string, string> | undefined> {
  return await open.identities().catch(() => new Map<string, string>());
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
