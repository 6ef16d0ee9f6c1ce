import { Option, type Command } from "commander";
import { WarmpathError } from "../../../core/errors.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import { endpointOf } from "../../../loadgen/endpoint.ts";
import type { LoadRun } from "../../../loadgen/types.ts";
import { readBaselines } from "../../live-page/baseline-files.ts";
import { LiveLoad } from "../../live-page/live-load.ts";
import { type RunningPage, startPage } from "../../live-page/start-page.ts";
import { packageVersion } from "../../package-version.ts";
import { initialConcurrency, type PreparedLoad } from "./compose.ts";

const DEFAULT_PORT = 8080;
const LAST_PORT = 65_535;

/** Options of `warmpath load` that are about the page and not about the load. */
export interface PageFlags {
  readonly ui?: boolean;
  readonly uiHost?: string;
  readonly uiPort?: number;
  readonly adminUrl?: string;
  readonly baselines?: readonly string[];
  readonly sloTtft?: number;
  readonly sloTpot?: number;
}

const PAGE_FLAGS: readonly string[] = [
  "ui",
  "uiHost",
  "uiPort",
  "adminUrl",
  "baselines",
  "sloTtft",
  "sloTpot",
] satisfies (keyof PageFlags)[];

/** Adds the flags of the page to the command. */
export function addPageOptions(command: Command): Command {
  return command
    .option("--ui", "serve the live page for this load")
    .addOption(new Option("--ui-host <value>", "address of the page; whoever reaches it may steer the load"))
    .addOption(
      new Option(
        "--ui-port <value>",
        `port of the page, ${DEFAULT_PORT} unless told; the next free one if it is taken, 0 takes any`,
      ).argParser(portNumber),
    )
    .addOption(
      new Option(
        "--admin-url <value>",
        "admin API of the Warmpath gateway in front: workers, decisions and policies on the page",
      ).argParser(adminAddress),
    )
    .option("--baselines <file>", "results of warmpath run to show beside live values; repeatable", collect)
    .addOption(new Option("--slo-ttft <ms>", "limit of the page on the p95 of TTFT").argParser(number))
    .addOption(new Option("--slo-tpot <ms>", "limit of the page on the p95 of TPOT").argParser(number));
}

/** Parts what was given into flags of the page and settings of the load. */
export function splitPageFlags(
  flags: Readonly<Record<string, unknown>>,
): readonly [PageFlags, Record<string, unknown>] {
  const entries = Object.entries(flags);
  const page = Object.fromEntries(entries.filter(([name]) => PAGE_FLAGS.includes(name)));
  return [page, Object.fromEntries(entries.filter(([name]) => !PAGE_FLAGS.includes(name)))];
}

/** The page of one load, before the load has begun: it must hear of every record. */
export class LoadPage {
  readonly #flags: PageFlags;
  readonly #prepared: PreparedLoad;
  readonly #load: LiveLoad;

  constructor(flags: PageFlags, prepared: PreparedLoad) {
    this.#flags = flags;
    this.#prepared = prepared;
    this.#load = new LiveLoad(initialConcurrency(prepared), true);
  }

  readonly record = (record: RequestRecord): void => this.#load.record(record);

  /** Serves the page for the run, once it is there. */
  async serve(run: LoadRun): Promise<RunningPage> {
    const { uiHost: host = "127.0.0.1", uiPort: port = DEFAULT_PORT, adminUrl, baselines = [] } = this.#flags;
    const { settings, model } = this.#prepared;
    this.#load.follow(run);
    return startPage({
      load: this.#load,
      identity: { version: packageVersion(), title: settings.url, about: model, targetUrl: settings.url },
      slo: { ttftMs: this.#flags.sloTtft, tpotMs: this.#flags.sloTpot },
      baselines: await readBaselines(baselines),
      host,
      port,
      adminUrl,
    });
  }
}

function number(written: string): number {
  const value = Number(written);
  if (written.trim() !== "" && value > 0) return value;
  throw new WarmpathError("WP_INVALID_INPUT", `${JSON.stringify(written)} is not a number more than 0`);
}

function portNumber(written: string): number {
  const value = Number(written);
  if (written.trim() !== "" && Number.isInteger(value) && value >= 0 && value <= LAST_PORT) return value;
  throw new WarmpathError(
    "WP_INVALID_INPUT",
    `${JSON.stringify(written)} is no port: give a whole number up to ${LAST_PORT}`,
  );
}

/** Where the admin API is, of whichever of its addresses was given. */
function adminAddress(written: string): string {
  const { origin, basePath } = endpointOf(written);
  return origin + basePath.replace(/\/admin(\/.*)?$/, "");
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
