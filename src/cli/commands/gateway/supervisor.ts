import cluster from "node:cluster";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReloadOutcome } from "../../../gateway/reload.ts";
import type { Log } from "./compose.ts";
import { type Addresses, Crew } from "./crew.ts";
import { type ReloadHistory, type SettingsTask, reasonOf } from "./process-roles.ts";
import { readInProcess } from "./settings-reader.ts";
import type { GatewaySettings } from "./settings.ts";

export interface SupervisorOptions {
  readonly settings: GatewaySettings;
  /** Where the settings are written. */
  readonly sources: SettingsTask;
  readonly log: Log;
}

/**
 * The first process of a gateway: keeps its ports, starts those who serve, has settings read again and successors take over. It
 * does nothing else, so that it has no reason to end before them, and whoever manages the service can go by its id.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #folder: string;
  readonly #crews = new Set<Crew>();
  #serving: Crew;
  #addresses: Addresses = { url: "", adminUrl: "" };
  #crewsSoFar = 0;
  #reloads: ReloadHistory | undefined;
  /** One change at a time. */
  #changing: Promise<unknown> = Promise.resolve();
  #isClosing = false;

  private constructor(options: SupervisorOptions, folder: string, adminPort: number | undefined) {
    this.#options = options;
    this.#folder = folder;
    this.#serving = this.#crew(options.settings, adminPort);
  }

  /** Starts a gateway; rejects with what kept it from serving. */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    const { processes } = options.settings;
    // Alone, a process accepts its connections itself; several get them in turns.
    cluster.schedulingPolicy = processes === 1 ? cluster.SCHED_NONE : cluster.SCHED_RR;
    const adminPort = await adminPortOf(options.settings);
    const folder = await mkdtemp(join(tmpdir(), "warmpath-"));
    const supervisor = new Supervisor(options, folder, adminPort);
    try {
      supervisor.#addresses = await supervisor.#serving.start();
      return supervisor;
    } catch (error) {
      await supervisor.#serving.kill();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get url(): string {
    return this.#addresses.url;
  }

  get adminUrl(): string {
    return this.#addresses.adminUrl;
  }

  get settings(): GatewaySettings {
    return this.#serving.settings;
  }

  get deciderPid(): number | undefined {
    return this.#serving.deciderPid;
  }

  get proxyPids(): readonly number[] {
    return this.#serving.proxyPids;
  }

  /** Reads the settings again and applies what may change while serving; with a mistake in them nothing changes. */
  reload(): Promise<void> {
    return this.#inTurn(() => this.#reload());
  }

  /** Has other processes take over, with the settings and the code there are now; if they cannot, those before go on. */
  restart(): Promise<void> {
    return this.#inTurn(() => this.#restart());
  }

  /** Takes nothing new, finishes what is under way, and ends all processes. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#crews].map((crew) => crew.stop()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #reload(): Promise<void> {
    const { sources, log } = this.#options;
    const inForce = this.#serving.settings;
    const atMs = Date.now();
    try {
      const { settings, changes, notes } = await readInProcess({ ...sources, inForce });
      for (const note of notes) log(note);
      const { live: changed, restart: needRestart } = changes;
      log(
        `reload: ${changed.length === 0 ? "nothing that may change while serving has" : `changed ${changed.join(", ")}`}`,
      );
      if (needRestart.length > 0) log(`reload: needs a restart: ${needRestart.join(", ")}`);
      this.#tellReload({ atMs, isApplied: true, changed, needRestart, problem: null }, settings);
    } catch (error) {
      const problem = reasonOf(error);
      log(`reload: ${problem}; nothing has changed`);
      this.#tellReload({ atMs, isApplied: false, changed: [], needRestart: [], problem }, inForce);
    }
  }

  #tellReload(last: ReloadOutcome, settings: GatewaySettings): void {
    const { applied = 0, refused = 0 } = this.#reloads ?? {};
    const { isApplied } = last;
    this.#reloads = { last, applied: applied + Number(isApplied), refused: refused + Number(!isApplied) };
    this.#serving.reloaded(settings, this.#reloads);
  }

  async #restart(): Promise<void> {
    const { sources, log } = this.#options;
    const before = this.#serving;
    let successors: Crew | undefined;
    try {
      const { settings, notes } = await readInProcess(sources);
      for (const note of notes) log(note);
      const estate = await before.estate();
      successors = this.#crew(settings, await adminPortOf(settings, this.#addresses));
      this.#addresses = await successors.start(estate);
    } catch (error) {
      await successors?.kill();
      if (successors !== undefined) this.#crews.delete(successors);
      log(`restart: ${reasonOf(error)}; those before go on`);
      return;
    }
    this.#serving = successors;
    log(`restart: ${successors.proxyPids.join(", ")} took over from ${before.proxyPids.join(", ")}`);
    void this.#retire(before);
  }

  async #retire(crew: Crew): Promise<void> {
    await crew.retire();
    this.#crews.delete(crew);
    this.#options.log("restart: those before have ended");
  }

  #crew(settings: GatewaySettings, adminPort: number | undefined): Crew {
    const name = `decider-${++this.#crewsSoFar}`;
    const isWindows = process.platform === "win32";
    const crew = new Crew({
      settings,
      adminPort,
      socket: isWindows ? `\\\\.\\pipe\\warmpath-${process.pid}-${name}` : join(this.#folder, `${name}.sock`),
      log: this.#options.log,
      reloadWanted: () => void this.reload(),
      reloads: this.#reloads,
    });
    this.#crews.add(crew);
    return crew;
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(() => (this.#isClosing ? undefined : change()));
    this.#changing = done;
    return done;
  }
}

/**
 * Processes that ask for any port of the same address are given the same one. So where admin API and gateway are in different
 * processes and may have any port, that of the admin API is settled beforehand; undefined where it need not be.
 */
async function adminPortOf(settings: GatewaySettings, before?: Addresses): Promise<number | undefined> {
  if (settings.adminPort !== 0 || settings.processes === 1) return undefined;
  if (before !== undefined) return Number(new URL(before.adminUrl).port);
  const probe = createServer().listen(0, settings.adminHost);
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
