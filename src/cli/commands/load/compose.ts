import { NS_PER_SECOND } from "../../../core/clock.ts";
import { WarmpathError } from "../../../core/errors.ts";
import type { RequestRecord } from "../../../core/request-record.ts";
import { type ConversationLoad, conversationLoad, type LoadPace } from "../../../loadgen/conversation-load.ts";
import { firstModel } from "../../../loadgen/models.ts";
import { ShareOfSupply } from "../../../loadgen/share-of-supply.ts";
import { type RunningLoad, startLoad } from "../../../loadgen/start-load.ts";
import { StarterPrompts } from "../../../loadgen/starter-prompts.ts";
import { readStarters } from "../../../loadgen/starters.ts";
import { SymbolicPrompts } from "../../../loadgen/symbolic-prompts.ts";
import type { LoadSource, PromptWriter } from "../../../loadgen/types.ts";
import { EndpointUser } from "../../../loadgen/user-model/endpoint.ts";
import { MOONCAKE_BLOCK_TOKENS } from "../../../wire/mooncake-trace.ts";
import { Schedule } from "../../../workload/schedule.ts";
import type { TraceRow } from "../../../workload/trace/row.ts";
import { TraceSessions } from "../../../workload/trace/trace-sessions.ts";
import { scaleRows } from "../../../workload/trace/transform.ts";
import type { Terminal } from "../../terminal.ts";
import { readTraceFile } from "../trace/trace-file.ts";
import type { LoadSettings } from "./settings.ts";

const DEFAULT_CONCURRENCY = 10;

/** Settings with everything in place that had to be asked or read for them. */
export interface PreparedLoad {
  readonly settings: LoadSettings;
  readonly model: string;
  readonly userModel?: string | undefined;
  /** Rows of the schedule, if there is one. */
  readonly rows?: readonly TraceRow[] | undefined;
}

/** The part of a load that one of several processes makes. */
export interface LoadShare {
  readonly index: number;
  readonly of: number;
}

export interface LoadHooks {
  readonly onRecord?: (record: RequestRecord) => void;
  readonly onFirstToken?: (ttftNs: number) => void;
}

/** A load of this process, and how often its user model failed. */
export interface OwnLoad {
  readonly run: RunningLoad;
  readonly userFailures: () => number;
  readonly close: () => Promise<void>;
}

/** Asks and reads what is needed, and refuses settings that exclude each other, before anything is sent. */
export async function prepareLoad(settings: LoadSettings, terminal: Terminal): Promise<PreparedLoad> {
  const { url, userModelUrl, schedule } = settings;
  checkPace(settings);
  const trace = schedule === undefined ? undefined : await readTraceFile(schedule, MOONCAKE_BLOCK_TOKENS, terminal);
  // Read here once, so that a bad folder is one line and not one per process.
  if (trace === undefined) await readStarters(settings.starters);
  const userModel =
    userModelUrl === undefined
      ? undefined
      : (settings.userModel ?? (await firstModel(userModelUrl, process.env["WARMPATH_USER_MODEL_API_KEY"])));
  const model = settings.model ?? (await firstModel(url, process.env["WARMPATH_API_KEY"]));
  return { settings, model, userModel, rows: trace?.rows };
}

/** How many conversations are under way at first; undefined for a load that follows a schedule. */
export function initialConcurrency({ settings }: PreparedLoad): number | undefined {
  if (settings.rate !== undefined || settings.schedule !== undefined) return undefined;
  return settings.concurrency ?? DEFAULT_CONCURRENCY;
}

/** Starts the load, or one process's share of it, from a moment that all processes share. */
export async function startOwnLoad(
  prepared: PreparedLoad,
  hooks: LoadHooks,
  share?: LoadShare & { readonly originHrtimeNs: bigint },
): Promise<OwnLoad> {
  const { settings, model } = prepared;
  const user = endpointUser(prepared);
  const load = settings.schedule === undefined ? await conversations(prepared, user, share) : replay(prepared, share);
  const run = startLoad({
    target: { url: settings.url, model, apiKey: process.env["WARMPATH_API_KEY"], extraBody: settings.body },
    ...load,
    durationNs: settings.duration === undefined ? undefined : settings.duration * NS_PER_SECOND,
    drainMs: settings.drain * 1000,
    endsWhenIdle: settings.schedule !== undefined,
    timeoutMs: settings.timeout === undefined ? undefined : settings.timeout * 1000,
    originHrtimeNs: share?.originHrtimeNs,
    ...hooks,
  });
  return {
    run,
    userFailures: () => (load.prompts instanceof StarterPrompts ? load.prompts.userFailures : 0),
    close: async () => user?.close(),
  };
}

/** Shares a number out among processes: as even as can be, and all of it. */
export function shareOf(total: number, { index, of }: LoadShare): number {
  return Math.floor(total / of) + (index < total % of ? 1 : 0);
}

function checkPace({ rate, schedule, concurrency, maxRate, ramp }: LoadSettings): void {
  const refuse = (problem: string): never => {
    throw new WarmpathError("WP_INVALID_INPUT", `${problem} (see warmpath load --help)`);
  };
  if (rate !== undefined && schedule !== undefined) refuse("--rate and --schedule exclude each other");
  const open = rate !== undefined ? "--rate" : schedule !== undefined ? "--schedule" : undefined;
  if (open === undefined) return;
  if (concurrency !== undefined) refuse(`--concurrency has no effect with ${open}`);
  if (maxRate !== undefined) refuse(`--max-rate has no effect with ${open}`);
  if (ramp !== 0) refuse(`--ramp has no effect with ${open}`);
}

async function conversations(
  prepared: PreparedLoad,
  user: EndpointUser | undefined,
  share: LoadShare | undefined,
): Promise<ConversationLoad> {
  const { settings } = prepared;
  const { seed, turns, maxTokens, think = user === undefined ? undefined : ([0, 0] as const) } = settings;
  const starters = await readStarters(settings.starters);
  return conversationLoad({
    starters,
    pace: paceOf(prepared, share),
    seed,
    turns,
    maxTokens,
    thinkMs: think,
    user,
    share,
  });
}

function paceOf(prepared: PreparedLoad, share: LoadShare = { index: 0, of: 1 }): LoadPace {
  const { rate, arrivals, maxRate, ramp } = prepared.settings;
  if (rate !== undefined) return { kind: "open", arrivals: { kind: arrivals, rateRps: rate } };
  return {
    kind: "closed",
    concurrency: shareOf(initialConcurrency(prepared) ?? 0, share),
    maxRateRps: maxRate === undefined ? undefined : maxRate / share.of,
    rampNs: ramp * NS_PER_SECOND,
  };
}

function replay(
  { settings, rows = [] }: PreparedLoad,
  share: LoadShare | undefined,
): { readonly source: LoadSource; readonly prompts: PromptWriter } {
  const sessions = new TraceSessions(scaleRows(rows, settings.speed), MOONCAKE_BLOCK_TOKENS);
  const supply = share === undefined ? sessions : new ShareOfSupply(sessions, share.index, share.of);
  return { source: new Schedule(supply), prompts: new SymbolicPrompts(settings.seed) };
}

function endpointUser({ settings, userModel }: PreparedLoad): EndpointUser | undefined {
  const { userModelUrl: url, seed } = settings;
  if (url === undefined || userModel === undefined) return undefined;
  return new EndpointUser({ url, model: userModel, seed, apiKey: process.env["WARMPATH_USER_MODEL_API_KEY"] });
}
