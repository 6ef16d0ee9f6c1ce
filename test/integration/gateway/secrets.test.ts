/** Nothing that clients say, are told or prove themselves with is kept or shown by default. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type GatewayUnderTest, startTestGateway } from "../../support/running-gateway.ts";
import { type Received, type RecordingEngine, SHORT_ANSWER, startRecordingEngine } from "./recording-engine.ts";

/** Each is looked for in everything that can be read of the gateway afterwards. */
const MARKS = {
  prompt: "MARKED-PROMPT-7f3a",
  answer: "MARKED-ANSWER-c41e",
  key: "wp-MARKED-KEY-91bd",
  wrongKey: "wp-MARKED-WRONG-KEY-55aa",
  engineKey: "MARKED-ENGINE-KEY-08d2",
  adminToken: "MARKED-ADMIN-TOKEN-3c77",
  salt: "MARKED-SALT-e6f0",
} as const;

const opened: { close(): unknown }[] = [];
let folder: string;
let written: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-secrets-"));
  written = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((chunk) => written.push(String(chunk)) > 0);
  }
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  for (const one of opened.splice(0).toReversed()) await one.close();
  await rm(folder, { recursive: true, force: true });
});

/** An engine that does what the prompt says, and repeats the prompt wherever it can. */
function obey(response: ServerResponse, { body }: Received): void {
  const event = `data: ${JSON.stringify({ choices: [{ text: MARKS.answer }] })}\n\n`;
  const complaint = JSON.stringify({ error: { message: `cannot do ${String(body["prompt"])}`, code: MARKS.prompt } });
  const [what] = String(body["prompt"]).split(" ", 1);
  if (what === "hang") return;
  if (what === "reset") response.destroy();
  else if (/^\d+$/.test(what)) response.writeHead(Number(what), { "content-type": "application/json" }).end(complaint);
  else if (body["stream"] !== true) response.end(SHORT_ANSWER.replaceAll('"hi"', JSON.stringify(MARKS.answer)));
  else {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
    if (what === "cut") setImmediate(() => response.destroy());
    else if (what === "stall") return;
    else response.end(what === "error" ? `data: ${complaint}\n\n` : "data: [DONE]\n\n");
  }
}

async function started(log: (line: string) => void): Promise<{ gateway: GatewayUnderTest; engine: RecordingEngine }> {
  const engine = await startRecordingEngine(obey);
  const keys = [{ name: "client", sha256: createHash("sha256").update(MARKS.key).digest("hex"), maxStreams: 20 }];
  const apiKeys = join(folder, "keys.json");
  await writeFile(apiKeys, JSON.stringify(keys));
  const gateway = await startTestGateway(
    {
      worker: [`e=${engine.url}`, "gone=http://127.0.0.1:9"],
      tokenizer: "word",
      blockTokens: 16,
      eventPlane: "none",
      apiKeys,
      saltByKey: true,
      maxBodyMegabytes: 0.01,
      firstByteSeconds: 0.5,
      gapSeconds: 0.5,
      answerSeconds: 0.5,
      headerSeconds: 0.5,
      requestSeconds: 0.5,
      healthSeconds: 0.2,
      // A worker that fails too often would be left out before every way to fail was tried.
      policy: "round-robin",
    },
    log,
  );
  opened.push(engine, gateway);
  return { gateway, engine };
}

/** What the gateway itself said to requests that ended in every way there is. */
async function tryEverything({ url }: GatewayUnderTest): Promise<string[]> {
  const headers = { authorization: `Bearer ${MARKS.key}` };
  const ask = async (body: string, given: Record<string, string> = headers): Promise<string> => {
    const response = await fetch(`${url}/v1/completions`, { method: "POST", body, headers: given }).catch(
      () => undefined,
    );
    return (await response?.text().catch(() => undefined)) ?? "";
  };
  const wanting = (what: string, fields: object = {}): string =>
    JSON.stringify({ model: "m", prompt: `${what} ${MARKS.prompt}`, cache_salt: MARKS.salt, ...fields });
  // Engines' own words pass through to whoever asked, so they are not the gateway's.
  for (const what of ["well", "400", "429", "500", "503"]) await ask(wanting(what));
  for (const what of ["well", "cut", "error"]) await ask(wanting(what, { stream: true }));
  const leaving = new AbortController();
  const left = fetch(`${url}/v1/completions`, {
    method: "POST",
    body: wanting("hang"),
    headers,
    signal: leaving.signal,
  });
  leaving.abort();
  await left.catch(() => undefined);
  return await Promise.all([
    ask(wanting("reset")),
    ask(wanting("hang")),
    ask(wanting("hang", { stream: true })),
    ask(wanting("stall", { stream: true })).then((stream) => stream.replaceAll(MARKS.answer, "")),
    ask(wanting("well"), { authorization: `Bearer ${MARKS.wrongKey}` }),
    ask(wanting("well"), { authorization: `Basic ${MARKS.wrongKey}` }),
    ask(`{"prompt": "${MARKS.prompt}"`),
    ask(wanting("well", { stream: MARKS.prompt })),
    ask(wanting("well", { cache_salt: [MARKS.salt] })),
    ask(JSON.stringify({ model: "m", prompt: [MARKS.prompt, MARKS.prompt] })),
    ask(wanting("x".repeat(20_000))),
    fetch(`${url}/v1/elsewhere?key=${MARKS.key}`, { method: "POST", body: MARKS.prompt, headers }).then((it) =>
      it.text(),
    ),
    raw(url, `${MARKS.prompt} nonsense\r\n\r\n`),
    raw(url, `POST /v1/completions HTTP/1.1\r\nauthorization: Bearer ${MARKS.key}\r\nx: ${"x".repeat(20_000)}\r\n\r\n`),
    raw(url, `POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${MARKS.key}\r\n`),
    raw(
      url,
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${MARKS.key}\r\ncontent-length: 99\r\n\r\n${MARKS.prompt}`,
    ),
  ]);
}

async function raw(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write(bytes);
  return await text(socket);
}

async function everythingShown({ url, adminUrl, decider }: GatewayUnderTest): Promise<string[]> {
  const headers = { authorization: `Bearer ${MARKS.adminToken}` };
  const paths = ["workers", "workers/e", "index", "decisions?limit=1000", "policy", "accounts", "settings"];
  const decisions = decider.router.log.latest(1000).map(({ decision }) => `decisions/${decision}`);
  const pages = [...paths, ...decisions].map(async (path) => {
    const response = await fetch(`${adminUrl}/admin/${path}`, { headers });
    expect({ path, status: response.status }).toEqual({ path, status: 200 });
    return await response.text();
  });
  const shown = ["/metrics", "/ready", "/health"].map(async (path) => (await fetch(url + path)).text());
  const stranger = fetch(`${adminUrl}/admin/workers`, { headers: { authorization: `Bearer ${MARKS.adminToken}x` } });
  return await Promise.all([...pages, ...shown, stranger.then((it) => it.text())]);
}

test("no prompt, answer, key, token or salt is in logs, metrics, records, admin views or errors", async () => {
  vi.stubEnv("WARMPATH_UPSTREAM_KEY", MARKS.engineKey);
  vi.stubEnv("WARMPATH_ADMIN_TOKEN", MARKS.adminToken);
  const logged: string[] = [];
  const { gateway, engine } = await started((line) => logged.push(line));
  const errors = await tryEverything(gateway);
  const shown = await everythingShown(gateway);
  // That there was something to find: the marks went all the way, and every way to end has left a trace.
  const sent = JSON.stringify(engine.received.map(({ headers, body }) => [headers.authorization, body]));
  for (const mark of [MARKS.prompt, MARKS.engineKey, MARKS.salt]) expect(sent).toContain(mark);
  const metrics = await gateway.decider.metricsText();
  for (const code of ["invalid_api_key", "invalid_json", "invalid_request", "body_too_large", "request_timed_out"]) {
    expect(metrics).toContain(`warmpath_requests_invalid_total{code="${code}"}`);
  }
  for (const account of ["completed", "rejected", "failed", "timedOut"])
    expect(metrics).toContain(`account="${account}"`);
  expect(errors.filter((error) => error === "")).toEqual([]);
  expect(shown.length).toBeGreaterThan(20);
  const all = [...logged, ...written, ...errors, ...shown].join("\n");
  expect(Object.entries(MARKS).filter(([, mark]) => all.includes(mark))).toEqual([]);
});
