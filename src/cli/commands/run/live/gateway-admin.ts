import { spawnSync } from "node:child_process";
import { WarmpathError } from "../../../../core/errors.ts";
import { createPolicy } from "../../../../core/policy/registry.ts";
import { field } from "../../../../wire/openai-usage.ts";
import { bearer, ownAdminToken } from "../../../secrets.ts";
import { httpJson } from "./http-page.ts";

/** A worker as the gateway's admin API describes it. */
export interface AdminWorker {
  readonly name: string;
  readonly url: string;
  readonly state: string;
  readonly events: Readonly<Record<string, number>> | undefined;
}

/** A policy with all its knobs. */
export interface PolicyInForce {
  readonly policy: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Puts a policy in place when nothing can be waited for any more: its own process, which this one waits for. */
const PUT_POLICY = `fetch(process.env.WARMPATH_PUT_URL, {
  method: "PUT", headers: JSON.parse(process.env.WARMPATH_PUT_HEADERS), body: process.env.WARMPATH_PUT_BODY,
})`;
const PUT_POLICY_MS = 5000;

/** The admin API of a Warmpath gateway, as far as experiments need it. */
export class GatewayAdmin {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url.replace(/\/+$/, "");
  }

  async workers(): Promise<AdminWorker[]> {
    const list = field(await this.#get("workers"), "workers");
    if (!Array.isArray(list)) throw this.#foreign();
    return list.map((worker: unknown) => {
      const events = field(worker, "events");
      return {
        name: String(field(worker, "name")),
        url: String(field(worker, "url")),
        state: String(field(worker, "state")),
        events: typeof events === "object" && events !== null ? (events as Record<string, number>) : undefined,
      };
    });
  }

  async readyWorkers(): Promise<number> {
    return (await this.workers()).filter(({ state }) => state === "ready").length;
  }

  /** How often each worker has begun anew, as its events tell. */
  async identities(): Promise<ReadonlyMap<string, string> | undefined> {
    const workers = await this.workers();
    return new Map(workers.map(({ name, events }) => [name, `${events?.["restarts"] ?? 0} restarts`]));
  }

  /** KV events that have changed the index; a gateway without an event plane has none. */
  async eventsApplied(): Promise<number> {
    const counts = (await this.workers()).map(({ events }) => events?.["applied"] ?? 0);
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** The policy that decides at present. */
  async policy(): Promise<PolicyInForce> {
    const answer = await this.#get("policy");
    const policy = field(answer, "policy");
    const parameters = field(answer, "parameters");
    if (typeof policy !== "string" || typeof parameters !== "object" || parameters === null) throw this.#foreign();
    return { policy, parameters: parameters as Record<string, unknown> };
  }

  /** Has a policy decide, with the knobs that are given and its own defaults for all others. */
  async setPolicy(policy: string, parameters: Readonly<Record<string, number | string>>): Promise<void> {
    // A gateway keeps the knobs of a policy that it has already: those of the arm before, if they were not all named.
    await this.putPolicy({ policy, parameters: createPolicy(policy, parameters).parameters });
  }

  /** Has a policy decide exactly as it did before. */
  async putPolicy(body: PolicyInForce): Promise<void> {
    await this.#call("policy", { method: "PUT", body });
  }

  /** The same while the process ends. */
  putPolicyAtExit(body: PolicyInForce): void {
    const environment = {
      WARMPATH_PUT_URL: this.#at("policy"),
      WARMPATH_PUT_HEADERS: JSON.stringify({ "content-type": "application/json", ...bearer(ownAdminToken()) }),
      WARMPATH_PUT_BODY: JSON.stringify(body),
    };
    const env = { ...process.env, ...environment };
    spawnSync(process.execPath, ["-e", PUT_POLICY], { env, stdio: "ignore", timeout: PUT_POLICY_MS });
  }

  /** The settings that the gateway was started with. */
  async settings(): Promise<Readonly<Record<string, unknown>>> {
    return (await this.#get("settings")) as Record<string, unknown>;
  }

  async #get(what: string): Promise<unknown> {
    return await this.#call(what, {});
  }

  /** Who gives the address of something else, or of nothing, has to be told which address it was. */
  async #call(what: string, options: Parameters<typeof httpJson>[1]): Promise<unknown> {
    try {
      return await httpJson(this.#at(what), { ...options, headers: bearer(ownAdminToken()) });
    } catch (cause) {
      const why = cause instanceof SyntaxError ? "the answer is not JSON" : messageOf(cause);
      throw new WarmpathError("WP_INVALID_INPUT", `the admin API at ${this.#url} cannot be used: ${why}`, { cause });
    }
  }

  #at(what: string): string {
    return `${this.#url}/admin/${what}`;
  }

  #foreign(): WarmpathError {
    return new WarmpathError("WP_INVALID_INPUT", `${this.#url} is not the admin API of a Warmpath gateway`);
  }
}

function messageOf(cause: unknown): string {
  const { message, code } = cause as NodeJS.ErrnoException;
  return message || code || String(cause);
}
