import { WarmpathError } from "../../../../core/errors.ts";
import type { Cell } from "../../../../lab/experiment/cells.ts";
import type { CellOrder, LiveConfig } from "../../../../lab/experiment/types.ts";
import { flatSettings } from "../../../../lab/live/arm-differences.ts";
import type { LiveTarget, OpenCell } from "../../../../lab/live/target.ts";
import { checkWorkers, failed, passed } from "../../../../lab/preflight/checks.ts";
import type { ArmFacts, CacheStart, Check } from "../../../../lab/results/types.ts";
import { firstModel } from "../../../../loadgen/models.ts";
import { GatewayAdmin, type PolicyInForce } from "../live/gateway-admin.ts";
import { httpText } from "../live/http-page.ts";
import { waitForWorkers } from "../live/wait-for-workers.ts";
import { ShellHooks } from "./shell-hooks.ts";
import { waitForModel } from "./wait-for-model.ts";
import {
  type KnownWorker,
  type WorkerSource,
  workersOfGateway,
  workersOfHook,
  workersOfList,
} from "./worker-sources.ts";

const READY_SECONDS = 1800;

export interface EndpointTargetOptions {
  readonly url: string;
  readonly experiment: string;
  readonly live: LiveConfig;
  /** Of the experiment's file. */
  readonly folder: string;
  /** Whether caches must be empty when a cell begins. */
  readonly isCold: boolean;
  readonly say: (line: string) => void;
}

/**
 * Any endpoint that speaks OpenAI's API. Arms are switched through the admin API of a Warmpath gateway, or by hooks; what
 * the endpoint cannot tell stays unavailable.
 */
export class EndpointTarget implements LiveTarget {
  readonly name: string;
  readonly order: CellOrder;
  readonly #options: EndpointTargetOptions;
  readonly #hooks: ShellHooks;
  readonly #admin: GatewayAdmin | undefined;
  /** The arm that serves, with its number of workers. */
  #serving: { readonly key: string; readonly cell: Cell; readonly facts: ArmFacts } | undefined;
  #wasSwitched = false;
  /** The gateway's policy before the first arm. */
  #former: PolicyInForce | undefined;
  /** A process that is made to end before it could put things back does it on its way out. */
  readonly #atExit = (): void => {
    if (this.#former !== undefined) this.#admin?.putPolicyAtExit(this.#former);
    this.#hooks.runAtExit("after_experiment", this.#ownEnvironment);
  };

  constructor(options: EndpointTargetOptions) {
    this.#options = options;
    const { url, live, folder, say } = options;
    this.name = url;
    this.#hooks = new ShellHooks({ hooks: live.hooks ?? {}, folder, say });
    this.#admin = live.adminUrl === undefined ? undefined : new GatewayAdmin(live.adminUrl);
    this.order = this.#hooks.has("before_arm") ? "by-arm" : "interleaved";
  }

  async open(cell: Cell, signal: AbortSignal): Promise<OpenCell> {
    const { url, live } = this.#options;
    const facts = await this.#switchTo(cell, signal);
    const workers = signal.aborted ? [] : await this.#workersOf(cell);
    // Nothing is sent any more after an interrupt, and nobody need be there to be asked.
    const model = live.model ?? (signal.aborted ? "" : await firstModel(url, process.env["WARMPATH_API_KEY"]));
    return {
      url,
      model,
      prompts: live.prompts ?? "chat",
      body: live.body ?? {},
      workers: workers.map(({ name }) => name),
      pages: pagesOf(workers, url, live),
      emptiedBy: this.#options.isCold && !signal.aborted ? await this.#emptyCaches(cell, workers) : "nothing",
      facts,
      identities: async () => {
        if (this.#workerSource(cell) === undefined) return undefined;
        return new Map((await this.#workersOf(cell)).map(({ name, identity }) => [name, identity]));
      },
      eventsApplied: async () => this.#admin?.eventsApplied(),
      close: () => Promise.resolve(),
    };
  }

  async close(): Promise<void> {
    try {
      await this.#putPolicyBack();
    } finally {
      process.off("exit", this.#atExit);
      await this.#runLastHooks();
    }
  }

  /** Before any hook, which may end the gateway. */
  async #putPolicyBack(): Promise<void> {
    const former = this.#former;
    if (former === undefined) return;
    await this.#admin?.putPolicy(former);
    this.#former = undefined;
  }

  async #runLastHooks(): Promise<void> {
    const serving = this.#serving;
    this.#serving = undefined;
    try {
      if (serving !== undefined) await this.#hooks.run("after_arm", environmentOf(serving.cell, this.#options));
    } finally {
      if (this.#wasSwitched) await this.#hooks.run("after_experiment", this.#ownEnvironment);
    }
  }

  get #ownEnvironment(): Record<string, string> {
    return { WARMPATH_EXPERIMENT: this.#options.experiment, WARMPATH_URL: this.#options.url };
  }

  /** Has the arm serve if another does, and waits for it. */
  async #switchTo(cell: Cell, signal: AbortSignal): Promise<ArmFacts> {
    const key = `${cell.arm.name} on ${cell.level.workers}`;
    if (this.#serving?.key === key) return this.#serving.facts;
    const { live, url, say } = this.#options;
    const environment = environmentOf(cell, this.#options);
    if (this.#serving !== undefined) {
      await this.#hooks.run("after_arm", environmentOf(this.#serving.cell, this.#options), signal);
      this.#serving = undefined;
    }
    if (!this.#wasSwitched) process.once("exit", this.#atExit);
    this.#wasSwitched = true;
    await this.#hooks.run("before_arm", environment, signal);
    const { arm, level } = cell;
    const seconds = live.readySeconds ?? READY_SECONDS;
    const isBeingStarted = this.#hooks.has("before_arm") || live.readySeconds !== undefined;
    await waitForModel({ url, seconds, isBeingStarted, signal, say });
    if (!signal.aborted) await this.#setPolicy(cell);
    const source = this.#workerSource(cell);
    const readyWorkers = async (): Promise<number | undefined> =>
      (await source?.workers())?.filter(({ isReady }) => isReady).length;
    const ready = await waitForWorkers({ readyWorkers }, level.workers, seconds, signal, (found) =>
      say(`waiting for ${level.workers} workers, at most ${seconds} s: ${found} are ready`),
    );
    const checks: Check[] = [checkWorkers(ready, level.workers), ...(await this.#checkAdmission(cell))];
    const facts = { arm: arm.name, checks, settings: await this.#settings(cell, environment) };
    this.#serving = { key, cell, facts };
    return facts;
  }

  async #setPolicy({ arm }: Cell): Promise<void> {
    if (this.#admin === undefined) return;
    this.#former ??= await this.#admin.policy();
    await this.#admin.setPolicy(arm.policy, arm.parameters);
  }

  #workerSource(cell: Cell): WorkerSource | undefined {
    const { workers } = this.#options.live;
    if (this.#hooks.has("list_workers")) return workersOfHook(this.#hooks, environmentOf(cell, this.#options));
    if (this.#admin !== undefined) return workersOfGateway(this.#admin);
    return workers === undefined ? undefined : workersOfList(workers);
  }

  /** All workers that are known, each with its address where the file or the gateway has one. */
  async #workersOf(cell: Cell): Promise<readonly KnownWorker[]> {
    const known = (await this.#workerSource(cell)?.workers()) ?? [];
    const { workers = [] } = this.#options.live;
    const listed = workers.length === 0 ? [] : await workersOfList(workers).workers();
    return known.map((worker) => ({
      ...worker,
      url: listed.find(({ name }) => name === worker.name)?.url ?? worker.url,
    }));
  }

  async #emptyCaches(cell: Cell, workers: readonly KnownWorker[]): Promise<CacheStart["enforcedBy"]> {
    if (this.#hooks.has("reset_caches")) {
      await this.#hooks.run("reset_caches", environmentOf(cell, this.#options));
      return "hook";
    }
    const urls = workers.flatMap(({ url }) => url ?? []);
    if (urls.length === 0 || urls.length < workers.length) return "nothing";
    const resets = urls.map((url) => httpText(`${url}/reset_prefix_cache`, { method: "POST" }));
    const refused = (await Promise.allSettled(resets)).filter(({ status }) => status === "rejected");
    return refused.length === 0 ? "reset" : "nothing";
  }

  /** A gateway is started with its admission; an arm that wants another would not be what it says. */
  async #checkAdmission({ arm }: Cell): Promise<Check[]> {
    if (this.#admin === undefined) return [];
    const { admission } = await this.#admin.settings();
    const { mode } = arm.admission;
    const detail = `the gateway admits by ${String(admission)}, the arm by ${mode}`;
    return [admission === mode ? passed("admission", detail) : failed("admission", detail)];
  }

  /** The configuration in force, as far as anybody tells. */
  async #settings(cell: Cell, environment: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const { policy, parameters } = cell.arm;
    const own = flatSettings({ policy: { name: policy, ...parameters } });
    const described = await this.#hooks.run("describe_arm", environment);
    const gateway = this.#admin === undefined ? {} : { gateway: await withoutPolicy(this.#admin) };
    return {
      ...own,
      ...flatSettings(gateway),
      ...(described === undefined ? {} : flatSettings(parsed(described), "described")),
    };
  }
}

/** What the gateway was started with: its policy has been changed since, and is the arm's own. */
async function withoutPolicy(admin: GatewayAdmin): Promise<object> {
  const { policy: _, set: __, ...settings } = await admin.settings();
  return settings;
}

function parsed(described: string): unknown {
  try {
    return JSON.parse(described) as unknown;
  } catch (cause) {
    throw new WarmpathError("WP_INVALID_INPUT", "hook describe_arm must print JSON", { cause });
  }
}

function pagesOf(workers: readonly KnownWorker[], url: string, live: LiveConfig): OpenCell["pages"] {
  const own = workers.flatMap(({ name, url: at }) => (at === undefined ? [] : { worker: name, url: `${at}/metrics` }));
  const frontend = `${new URL(url).origin}/metrics`;
  const others = new Set([frontend, ...(live.metrics ?? [])]);
  return [...own, ...[...others].map((page) => ({ worker: undefined, url: page }))];
}

function environmentOf({ arm, level }: Cell, { url, experiment }: EndpointTargetOptions): Record<string, string> {
  return {
    WARMPATH_EXPERIMENT: experiment,
    WARMPATH_ARM: arm.name,
    WARMPATH_POLICY: arm.policy,
    WARMPATH_PARAMETERS: JSON.stringify(arm.parameters),
    WARMPATH_WORKERS: String(level.workers),
    WARMPATH_URL: url,
  };
}
