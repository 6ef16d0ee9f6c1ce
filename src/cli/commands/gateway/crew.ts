import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { WarmpathError } from "../../../core/errors.ts";
import type { Log } from "./compose.ts";
import {
  type Estate,
  type FromChild,
  type ReloadHistory,
  type ServingTask,
  type ToChild,
  processFile,
} from "./process-roles.ts";
import type { GatewaySettings } from "./settings.ts";

export interface CrewOptions {
  readonly settings: GatewaySettings;
  /** Port of the admin API, where the settings leave it open and it must be known beforehand. */
  readonly adminPort: number | undefined;
  /** Socket of the decider, where that is a process of its own. */
  readonly socket: string;
  readonly log: Log;
  /** Told that somebody wants the settings to be read again. */
  readonly reloadWanted: () => void;
  readonly reloads: ReloadHistory | undefined;
}

/** Where a crew serves. */
export interface Addresses {
  readonly url: string;
  readonly adminUrl: string;
}

type Role = "whole" | "decider" | "proxy";

const FILES: Readonly<Record<Role, URL>> = {
  whole: new URL("./whole-process.ts", import.meta.url),
  decider: new URL("./decider-process.ts", import.meta.url),
  proxy: new URL("./proxy-process.ts", import.meta.url),
};
const TITLES: Readonly<Record<Role, string>> = { whole: "the gateway", decider: "the decider", proxy: "a proxy" };

/**
 * V8 collects what is old again once a tenth has come to it. What a stream leaves behind is old, so under load that is every
 * few seconds, with pauses that first tokens wait for. Memory twice as large is the better bargain.
 */
const LESS_COLLECTION = "--heap-growing-percent=100";
const RESTART_MS = 250;
const LONGEST_RESTART_MS = 5000;
const START_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 5000;
/** What a process takes to end when all that was under way has ended, or has had its time: its last words, and much patience. */
const ENDS_WITHIN_MS = 10_000;
/** The decider has nothing to wait for once the proxies have ended. */
const DECIDER_ENDS_WITHIN_MS = 5000;
const NOTHING: Estate = { leases: [], drained: [], readyWorkers: 0 };

/**
 * The processes that serve with one set of settings: one that does everything, or one that decides and several that hold
 * connections. Starts again whichever ends unasked. Their ports are those of this process, and so are their successors'.
 */
export class Crew {
  readonly #options: CrewOptions;
  readonly #members = new Map<Worker, Role>();
  /** Those who do not serve yet, and hear nothing but their task. */
  readonly #starting = new Set<Worker>();
  #settings: GatewaySettings;
  #reloads: ReloadHistory | undefined;
  #isEnding = false;
  #isRetiring = false;

  constructor(options: CrewOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.#reloads = options.reloads;
  }

  get settings(): GatewaySettings {
    return this.#settings;
  }

  /** Undefined where one process does everything. */
  get deciderPid(): number | undefined {
    return this.#inRole("decider")[0]?.process.pid;
  }

  get proxyPids(): readonly number[] {
    return this.#inRole("whole", "proxy").flatMap(({ process: { pid } }) => pid ?? []);
  }

  /** Resolves when all of them serve; those who take over from others say so only when they know what these know. */
  async start(estate?: Estate): Promise<Addresses> {
    const { processes } = this.#settings;
    if (processes === 1) return await this.#begin("whole", estate);
    const { adminUrl } = await this.#begin("decider", estate);
    const proxies = await Promise.all(Array.from({ length: processes }, () => this.#begin("proxy")));
    return { url: proxies[0].url, adminUrl };
  }

  /** Settings were read again. */
  reloaded(settings: GatewaySettings, reloads: ReloadHistory): void {
    this.#settings = settings;
    this.#reloads = reloads;
    this.#tell({ kind: "reloaded", settings, reloads }, "whole", "decider", "proxy");
  }

  /** What those who are to follow must know. */
  async estate(): Promise<Estate> {
    const [knower] = this.#inRole("whole", "decider");
    if (knower === undefined) return NOTHING;
    const answer = new Promise<Estate>((resolve) => {
      // One that cannot even answer is to be replaced all the more.
      setTimeout(() => resolve(NOTHING), ANSWER_WITHIN_MS).unref();
      const hear = (message: FromChild): void => {
        if (message.kind !== "estate") return;
        knower.off("message", hear);
        resolve(message.estate);
      };
      knower.on("message", hear);
    });
    this.#tell({ kind: "hand-over" }, "whole", "decider");
    return await answer;
  }

  /** Others serve now: has all finish what they have under way, and resolves when they have ended. */
  async retire(): Promise<void> {
    this.#isEnding = true;
    this.#isRetiring = true;
    this.#dismissStarting();
    this.#tell({ kind: "retire" }, "whole", "decider", "proxy");
    await this.#endWithin(this.#drainMs + DECIDER_ENDS_WITHIN_MS, "whole", "decider", "proxy");
  }

  /** Takes nothing new, finishes what is under way, and ends. The decider goes last: what proxies still have needs it. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    this.#dismissStarting();
    this.#tell({ kind: "stop" }, "whole", "proxy");
    await this.#endWithin(this.#drainMs, "whole", "proxy");
    // One that retires ends by itself, now that nobody needs it.
    if (!this.#isRetiring) this.#tell({ kind: "retire" }, "decider");
    await this.#endWithin(DECIDER_ENDS_WITHIN_MS, "decider");
  }

  /** Ends all at once. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    const members = [...this.#members.keys()];
    for (const { process: child } of members) child.kill("SIGKILL");
    await Promise.all(members.map(ended));
  }

  get #drainMs(): number {
    return this.#settings.drainSeconds * 1000 + ENDS_WITHIN_MS;
  }

  /** Resolves when all of these roles have ended. One that hangs cannot hear that it should, and must not be waited for. */
  async #endWithin(withinMs: number, ...roles: readonly Role[]): Promise<void> {
    const members = this.#inRole(...roles);
    const giveUp = setTimeout(() => {
      for (const member of members) {
        const { process: child } = member;
        const role = this.#members.get(member);
        if (role === undefined) continue;
        this.#options.log(`${TITLES[role]} (${child.pid}) did not end within ${withinMs / 1000} s; it is killed`);
        child.kill("SIGKILL");
      }
    }, withinMs);
    await Promise.all(members.map(ended));
    clearTimeout(giveUp);
  }

  #begin(role: Role, estate?: Estate): Promise<Addresses> {
    // In front of what Node was started with: of two flags the later counts, and that should be the operator's.
    const execArgv = [LESS_COLLECTION, ...process.execArgv];
    cluster.setupPrimary({ exec: processFile(FILES[role]), args: [], execArgv });
    const member = cluster.fork();
    this.#members.set(member, role);
    this.#starting.add(member);
    const { socket, adminPort = this.#settings.adminPort } = this.#options;
    const task = { settings: { ...this.#settings, adminPort }, socket, estate, reloads: this.#reloads };
    return this.#serving(member, role, task);
  }

  #serving(member: Worker, role: Role, task: ServingTask): Promise<Addresses> {
    const { log, reloadWanted } = this.#options;
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => {
        member.process.kill("SIGKILL");
        reject(problem(`${TITLES[role]} did not serve within ${START_WITHIN_MS / 1000} s`));
      }, START_WITHIN_MS);
      member.on("message", (message: FromChild) => {
        if (message.kind === "listening") member.send({ kind: "serve", task } satisfies ToChild);
        else if (message.kind === "serving") {
          clearTimeout(giveUp);
          this.#starting.delete(member);
          this.#catchUp(member, task);
          resolve(message);
        } else if (message.kind === "failed") reject(new WarmpathError("WP_INVALID_INPUT", message.message));
        else if (message.kind === "log") log(message.line);
        else if (message.kind === "reload") reloadWanted();
      });
      member.once("error", reject);
      member.once("exit", (code, signal) => {
        clearTimeout(giveUp);
        this.#members.delete(member);
        reject(problem(`${TITLES[role]} ended with ${signal ?? code} at its start`));
        // One that never got to serve has told why, to whoever waits for it.
        if (this.#starting.delete(member) || this.#isEnding) return;
        log(`${TITLES[role]} (${member.process.pid}) ended with ${signal ?? code}; starting another`);
        this.#beginAgain(role, RESTART_MS);
      });
    });
  }

  /** Settings may have been read again while it started. */
  #catchUp(member: Worker, { reloads }: ServingTask): void {
    if (this.#reloads === undefined || this.#reloads === reloads) return;
    member.send({ kind: "reloaded", settings: this.#settings, reloads: this.#reloads } satisfies ToChild);
  }

  #dismissStarting(): void {
    for (const { process: child } of this.#starting) child.kill("SIGKILL");
  }

  #beginAgain(role: Role, delayMs: number): void {
    setTimeout(() => {
      if (this.#isEnding) return;
      this.#begin(role).catch((error: Error) => {
        this.#options.log(`${TITLES[role]} did not start: ${error.message}`);
        this.#beginAgain(role, Math.min(LONGEST_RESTART_MS, 2 * delayMs));
      });
    }, delayMs);
  }

  #inRole(...roles: readonly Role[]): Worker[] {
    return [...this.#members].flatMap(([member, role]) => (roles.includes(role) ? member : []));
  }

  #tell(message: ToChild, ...roles: readonly Role[]): void {
    for (const member of this.#inRole(...roles)) if (member.isConnected()) member.send(message);
  }
}

async function ended({ process: child }: Worker): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  // What it said last may still be on its way.
  if (child.connected) await once(child, "disconnect");
}

function problem(message: string): WarmpathError {
  return new WarmpathError("WP_INVALID_STATE", message);
}
