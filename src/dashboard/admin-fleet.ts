import { request } from "undici";
import type { z } from "zod";
import { WarmpathError } from "../core/errors.ts";
import type { PolicyParameters } from "../core/policy/types.ts";
import { jsonOf } from "../wire/body.ts";
import { field } from "../wire/openai-usage.ts";
import {
  accountsSchema,
  decisionsSchema,
  outcomeOf,
  policySchema,
  readDecision,
  readWorker,
  workersSchema,
} from "./admin-answers.ts";
import type { DecisionView } from "./decision-view.ts";
import type { FleetView, PolicyChoice } from "./protocol.ts";
import type { CachesReset, FleetSource, WorkerProcesses } from "./sources.ts";

export interface AdminFleetOptions {
  /** Where the gateway's admin API is. */
  readonly adminUrl: string;
  /** What it asks for, where it asks for a token. */
  readonly adminToken?: string | undefined;
  readonly intervalMs?: number;
  readonly processes?: WorkerProcesses | undefined;
  /** Wall clock in milliseconds. */
  readonly now: () => number;
}

const DEFAULT_INTERVAL_MS = 400;
const DECISIONS_SHOWN = 8;
const TIMEOUT_MS = 3000;

/** The fleet as a gateway's admin API tells of it, asked a few times a second. */
export class AdminFleet implements FleetSource {
  readonly processes: WorkerProcesses | undefined;
  readonly #options: AdminFleetOptions;
  readonly #decisions = new Map<number, DecisionView>();
  #view: FleetView | undefined;
  #problem: string | undefined;
  #policies: readonly PolicyChoice[] = [];
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;

  constructor(options: AdminFleetOptions) {
    this.#options = options;
    this.processes = options.processes;
  }

  /** Asks once, and from then on every so often. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.refresh(), this.#options.intervalMs ?? DEFAULT_INTERVAL_MS);
    await this.refresh();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking;
  }

  get policies(): readonly PolicyChoice[] {
    return this.#policies;
  }

  view(): FleetView | undefined {
    return this.#view;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  /** Asks now; while an answer is awaited nobody asks again. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async setPolicy(policy: string, parameters?: PolicyParameters): Promise<void> {
    const body = JSON.stringify({ policy, ...(parameters !== undefined && { parameters }) });
    await this.#call("PUT", `${this.#options.adminUrl}/admin/policy`, body);
    // What was asked before may still be answered with the policy from before.
    await this.#asking;
    await this.refresh();
  }

  /** By the route that vLLM has for it, and simulated workers too. */
  readonly resetCaches = async (): Promise<CachesReset> => {
    const ended = this.processes?.ended;
    const workers = this.#view?.workers.filter(({ name }) => ended?.has(name) !== true) ?? [];
    const problems = await Promise.all(
      workers.map(({ name, url }) =>
        this.#call("POST", `${url}/reset_prefix_cache`).then(
          () => [],
          (error: unknown) => [`${name}: ${error instanceof Error ? error.message : String(error)}`],
        ),
      ),
    );
    const told = problems.flat();
    return { workers: workers.length - told.length, problems: told };
  };

  async #ask(): Promise<void> {
    try {
      const [{ workers }, policy, { queued }, decisions] = await Promise.all([
        this.#get("workers", workersSchema),
        this.#get("policy", policySchema),
        this.#get("accounts", accountsSchema),
        this.#newestDecisions(),
      ]);
      this.#policies = policy.available;
      this.#view = {
        policy: policy.policy,
        parameters: policy.parameters,
        workers: workers
          .map((worker) => ({ ...readWorker(worker), sinceMs: this.#options.now() }))
          .sort((a, b) => byName(a.name, b.name)),
        decisions,
        queued,
        isAnswering: true,
      };
      this.#problem = undefined;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
      if (this.#view !== undefined) this.#view = { ...this.#view, isAnswering: false };
    }
  }

  /** Candidates do not change any more, so they are asked for once; what became of a decision is in the list. */
  async #newestDecisions(): Promise<DecisionView[]> {
    const { decisions } = await this.#get(`decisions?limit=${DECISIONS_SHOWN}`, decisionsSchema);
    const listed = decisions.toSorted((a, b) => b.decision - a.decision);
    const views = await Promise.all(
      listed.map(async (one) => {
        const known = this.#decisions.get(one.decision);
        if (known !== undefined) return { ...known, ...outcomeOf(one) };
        return readDecision(await this.#call("GET", `${this.#options.adminUrl}/admin/decisions/${one.decision}`));
      }),
    );
    this.#decisions.clear();
    for (const view of views) this.#decisions.set(view.decision, view);
    return views;
  }

  async #get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    const url = `${this.#options.adminUrl}/admin/${path}`;
    const { data, success } = schema.safeParse(await this.#call("GET", url));
    if (success) return data;
    throw new WarmpathError("WP_INVALID_INPUT", `${url} does not answer as the admin API of a gateway does`);
  }

  async #call(method: "GET" | "PUT" | "POST", url: string, body?: string): Promise<unknown> {
    const { adminUrl, adminToken } = this.#options;
    // The token is the gateway's: workers, who are asked from here too, must not see it.
    const isKnown = adminToken !== undefined && url.startsWith(`${adminUrl}/`);
    const { statusCode, body: answer } = await request(url, {
      method,
      headers: {
        ...(isKnown && { authorization: `Bearer ${adminToken}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body }),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const text = await answer.text();
    const value = jsonOf(Buffer.from(text));
    if (statusCode < 300) return value;
    const message = field(field(value, "error"), "message");
    throw new WarmpathError(
      "WP_INVALID_INPUT",
      typeof message === "string" ? message : `${url} answered ${statusCode}`,
    );
  }
}

/** Workers come in the order they were found; people look for them by name. */
function byName(left: string, right: string): number {
  return left.localeCompare(right, "en", { numeric: true });
}
