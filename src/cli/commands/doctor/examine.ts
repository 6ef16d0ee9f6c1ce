import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { FleetFacts, WorkerFacts } from "../../../lab/preflight/fleet-facts.ts";
import { field } from "../../../wire/openai-usage.ts";
import { createTokens, tokensOptions } from "../../prompt-tokens.ts";
import { bearer, ownAdminToken, ownApiKey, ownUpstreamKey } from "../../secrets.ts";
import { askEngine, chat, getJson } from "./engine-questions.ts";

/** Where the gateway to be examined is. */
export interface ExaminedGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** How long events may take to arrive. */
  readonly eventsWithinMs?: number;
}

interface AdminWorker {
  readonly name: string;
  readonly url: string;
  readonly phase: string | undefined;
  readonly indexState: string | undefined;
  readonly events: number | undefined;
}

/** Enough that a prefix is worth finding, and no burden on anybody. */
const PROBE_BLOCKS = 8;
const DEFAULT_BLOCK_TOKENS = 16;
const DEFAULT_EVENTS_WITHIN_MS = 3000;
const LOOK_MS = 50;
const TEXT =
  "The quick brown fox jumps over the lazy dog. Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich: 1234567890!";

/** Looks at a gateway and its workers from outside, and sends each worker a prompt that nobody has seen before. */
export async function examine(gateway: ExaminedGateway): Promise<FleetFacts> {
  const settings = await getJson(`${gateway.adminUrl}/admin/settings`, ownAdminToken());
  const isGatewayReachable = settings !== undefined && (await getJson(`${gateway.url}/health`)) !== undefined;
  const blockTokens = numberIn(settings, "blockTokens");
  const tokenizer = textIn(settings, "tokenizer");
  const facts: WorkerFacts[] = [];
  // Under a salt of its own key the doctor's prompt is another one than it was on the worker.
  const isComparable = field(settings, "saltByKey") !== true;
  for (const worker of await workersOf(gateway)) {
    facts.push(await examineWorker(gateway, worker, blockTokens, isComparable));
  }
  return {
    gatewayUrl: gateway.url,
    isGatewayReachable,
    blockTokens,
    tokenizer,
    ...(await gatewayTokens(tokenizer)),
    workers: facts,
  };
}

async function examineWorker(
  gateway: ExaminedGateway,
  { name, url, phase, indexState, events }: AdminWorker,
  blockTokens: number | undefined,
  isComparable: boolean,
): Promise<WorkerFacts> {
  const engine = await askEngine(url, TEXT, engineKey());
  const model = engine.models?.[0];
  const told = { name, url, phase, ...engine };
  const untold = { newEvents: undefined, probeBlocks: 0, matchedBlocks: undefined, repeatedCachedTokens: undefined };
  if (model === undefined) return { ...told, indexState, ...untold };
  const content = unseenWords(PROBE_BLOCKS * (blockTokens ?? DEFAULT_BLOCK_TOKENS));
  await chat(url, model, content, engineKey());
  const after = await heardOf(gateway, name, events);
  const match = isComparable ? await matchOf(gateway, model, content, name) : undefined;
  const repeated = await chat(url, model, content, engineKey());
  return {
    ...told,
    indexState: after?.indexState ?? indexState,
    newEvents: events === undefined || after?.events === undefined ? undefined : after.events - events,
    probeBlocks: match?.promptBlocks ?? 0,
    matchedBlocks: match?.matchedBlocks,
    repeatedCachedTokens: repeated?.cachedTokens,
  };
}

/** The worker as the gateway sees it once it has heard something new of it, or as it is when patience ends. */
async function heardOf(
  gateway: ExaminedGateway,
  name: string,
  eventsBefore: number | undefined,
): Promise<AdminWorker | undefined> {
  const untilMs = performance.now() + (gateway.eventsWithinMs ?? DEFAULT_EVENTS_WITHIN_MS);
  for (;;) {
    const worker = (await workersOf(gateway)).find((one) => one.name === name);
    if (eventsBefore === undefined || (worker?.events ?? 0) > eventsBefore || performance.now() > untilMs)
      return worker;
    await pause(LOOK_MS);
  }
}

/** Sends the prompt through the gateway, wherever it goes, and reads in the decision how much of it was known to be where. */
async function matchOf(
  { url, adminUrl }: ExaminedGateway,
  model: string,
  content: string,
  worker: string,
): Promise<{ promptBlocks: number; matchedBlocks: number } | undefined> {
  const answer = await chat(url, model, content, ownApiKey());
  const decision = answer?.headers["x-warmpath-decision"];
  const record =
    typeof decision === "string"
      ? await getJson(`${adminUrl}/admin/decisions/${decision}`, ownAdminToken())
      : undefined;
  const candidates = field(record, "candidates");
  const promptBlocks = numberIn(record, "promptBlocks");
  if (!Array.isArray(candidates) || promptBlocks === undefined) return undefined;
  const candidate: unknown = candidates.find((one) => [textIn(one, "replica"), textIn(one, "name")].includes(worker));
  const matchedBlocks = numberIn(candidate, "confirmedBlocks");
  return matchedBlocks === undefined ? undefined : { promptBlocks, matchedBlocks };
}

async function workersOf({ adminUrl }: ExaminedGateway): Promise<AdminWorker[]> {
  const listed = field(await getJson(`${adminUrl}/admin/workers`, ownAdminToken()), "workers");
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((worker): AdminWorker[] => {
    const name = textIn(worker, "name");
    const url = textIn(worker, "url");
    if (name === undefined || url === undefined) return [];
    const events = numberIn(field(worker, "events"), "applied");
    const phase = textIn(worker, "phase");
    return [{ name, url: url.replace(/\/+$/, ""), phase, indexState: textIn(worker, "indexState"), events }];
  });
}

async function gatewayTokens(
  tokenizer: string | undefined,
): Promise<{ tokens: readonly number[] | undefined; tokensProblem?: string }> {
  if (tokenizer === undefined) return { tokens: undefined };
  try {
    const source = await createTokens(tokensOptions(tokenizer), () => bearer(engineKey())["authorization"]);
    const tokens = [...(await source.tokensOf({ kind: "text", text: TEXT }))];
    const { fidelity } = source;
    await source.close();
    return { tokens: fidelity === "exact" ? tokens : undefined };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { tokens: undefined, tokensProblem: `the gateway's tokens cannot be made here: ${reason}` };
  }
}

/** A gateway without a key for its engines passes the client's on, so that one opens both. */
function engineKey(): string | undefined {
  return ownUpstreamKey() ?? ownApiKey();
}

function unseenWords(count: number): string {
  const seed = randomUUID().slice(0, 8);
  return Array.from({ length: count }, (_, at) => `${seed}${at}`).join(" ");
}

function numberIn(value: unknown, name: string): number | undefined {
  const found = field(value, name);
  return typeof found === "number" ? found : undefined;
}

function textIn(value: unknown, name: string): string | undefined {
  const found = field(value, name);
  return typeof found === "string" ? found : undefined;
}
