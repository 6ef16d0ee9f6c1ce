import { conversationLoad } from "../../../loadgen/conversation-load.ts";
import { startLoad } from "../../../loadgen/start-load.ts";
import { readStarters } from "../../../loadgen/starters.ts";
import type { LoadRun } from "../../../loadgen/types.ts";
import type { Experiment } from "../../../lab/experiment/types.ts";
import { readBaselines, shippedBaselines } from "../../live-page/baseline-files.ts";
import { LiveLoad } from "../../live-page/live-load.ts";
import { type RunningPage, startPage } from "../../live-page/start-page.ts";
import { packageVersion } from "../../package-version.ts";
import { DemoFleet } from "./demo-fleet.ts";
import type { UpSettings } from "./settings.ts";

/** Everything that `warmpath up` has started. */
export interface RunningDemo {
  readonly pageUrl: string;
  readonly gatewayUrl: string;
  readonly adminUrl: string;
  readonly workers: number;
  readonly pids: readonly number[];
  close(): Promise<void>;
}

/** Starts fleet, load and page, in this order; what was started before something failed is stopped again. */
export async function startDemo(
  settings: UpSettings,
  experiment: Experiment,
  log: (line: string) => void,
): Promise<RunningDemo> {
  const starters = await readStarters(settings.starters);
  const baselines =
    settings.baselines.length === 0 ? await shippedBaselines(experiment.name) : await readBaselines(settings.baselines);
  const { gatewayPort, adminPort, workerPort, policy, speed } = settings;
  const workers = settings.workers ?? experiment.fleet.workers[0];
  const fleet = await DemoFleet.start({
    fleet: experiment.fleet,
    workers,
    policy,
    speed,
    gatewayPort,
    adminPort,
    workerPort,
    log,
  });
  let run: LoadRun | undefined;
  let page: RunningPage | undefined;
  const close = async (): Promise<void> => {
    await page?.close();
    await run?.stop({ drainMs: 0 });
    await fleet.close();
  };
  try {
    const load = new LiveLoad(settings.concurrency, !settings.stopped);
    run = startLoad({
      target: { url: fleet.url, model: experiment.fleet.model },
      ...conversationLoad({ starters, pace: { kind: "closed", concurrency: load.wanted }, seed: settings.seed }),
      onRecord: load.record,
    });
    load.follow(run);
    page = await startPage({
      load,
      identity: {
        version: packageVersion(),
        title: `${workers} simulated ${cardsOf(experiment)} workers`,
        about: `${experiment.fleet.model}, ${experiment.fleet.engine.profile}, real time${speed === 1 ? "" : ` x ${speed}`}`,
        targetUrl: fleet.url,
      },
      slo: experiment.slo,
      baselines,
      host: settings.host,
      port: settings.port,
      adminUrl: fleet.adminUrl,
      processes: fleet,
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    pageUrl: page.url,
    gatewayUrl: fleet.url,
    adminUrl: fleet.adminUrl,
    workers,
    get pids() {
      return fleet.pids;
    },
    close,
  };
}

function cardsOf({ fleet: { gpu, tensorParallel } }: Experiment): string {
  const name = gpu.toUpperCase();
  return tensorParallel === 1 ? name : `${tensorParallel} x ${name}`;
}
