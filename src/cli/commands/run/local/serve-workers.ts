import { fleetMemory } from "../../../../lab/experiment/memory.ts";
import { startWorker } from "../../worker/compose.ts";
import { readSettings } from "../../worker/settings.ts";
import { workerEngine } from "../simulated-fleet.ts";
import type { LocalWorker, WorkersPlan } from "./fleet-plan.ts";

/** No prompt of an experiment is too long; the twin refuses none either. */
const MAX_SEQUENCE_TOKENS = 10_000_000;

/** Workers that serve. */
export interface ServingWorkers {
  readonly workers: readonly LocalWorker[];
  close(): Promise<void>;
}

/** Starts the workers of a plan in this process: the very engines of the twin, in real time and behind HTTP. */
export async function serveWorkers({ fleet, names, tokensPerSequence, seed }: WorkersPlan): Promise<ServingWorkers> {
  const engine = workerEngine(fleet, tokensPerSequence, seed);
  const plan = fleetMemory(fleet, tokensPerSequence);
  const running = await Promise.all(
    names.map((name) =>
      startWorker({
        settings: readSettings({
          name,
          port: 0,
          modelPath: fleet.model,
          gpu: fleet.gpu,
          tensorParallelSize: fleet.tensorParallel,
          maxSeqLen: MAX_SEQUENCE_TOKENS,
          maxBodyMegabytes: 1024,
          seed,
        }),
        description: { engine, plan, kv: fleet.kv },
        crash: () => process.exit(1),
      }),
    ),
  );
  const { poolBlocks, maxSequences, maxTokensPerStep } = engine.limits;
  return {
    workers: running.map(({ name, url }) => ({ name, url, limits: { poolBlocks, maxSequences, maxTokensPerStep } })),
    close: async () => void (await Promise.all(running.map((worker) => worker.close(0)))),
  };
}
