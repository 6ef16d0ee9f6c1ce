import { Readable } from "node:stream";
import type { IncomingMessage, ServerResponse } from "node:http";
import { WarmpathError } from "../../src/core/errors.ts";
import type { Rng } from "../../src/core/rng.ts";
import { Generation } from "../../src/gateway/generation.ts";
import { readAnswerHead, readControl, readRequestHead } from "../../src/planes/request/parts/nats-frames.ts";
import { WordTokenizer } from "../../src/tokenizer/word-tokenizer.ts";
import { jsonOf } from "../../src/wire/body.ts";
import { EngineDecoder } from "../../src/wire/kv-events/engine-decoder.ts";
import { encodeEngineBatch } from "../../src/wire/kv-events/engine-encoder.ts";
import { EventStreamReader } from "../../src/wire/kv-events/event-stream.ts";
import {
  decodeKvEvents,
  decodeLoad,
  decodeSnapshot,
  decodeStreamHead,
  decodeStreamedEvent,
  encodeKvEvent,
  encodeSnapshot,
} from "../../src/wire/kv-events/json-events.ts";
import { TensorRtDecoder } from "../../src/wire/kv-events/tensorrt-decoder.ts";
import { encodeTensorRtEvent } from "../../src/wire/kv-events/tensorrt-encoder.ts";
import { parseMooncakeTrace, writeMooncakeRow } from "../../src/wire/mooncake-trace.ts";
import { continuationObstacle, continuedBody } from "../../src/wire/openai-continuation.ts";
import { parseGenerationRequest, withUsageAsked } from "../../src/wire/openai-request.ts";
import { encodeUsageEvent } from "../../src/wire/openai-reply.ts";
import { decodePeerMessage, encodePeerMessage } from "../../src/wire/peer-message.ts";
import { engineLoadOf } from "../../src/wire/prometheus-text.ts";
import { SSE_DONE, sseEvent, SseScanner } from "../../src/wire/sse.ts";
import { StreamSplice, StreamTranscript } from "../../src/wire/stream-transcript.ts";
import { type Corpus, corpusOf } from "./mutation.ts";

/** One parser under fuzzing. It may refuse what it likes, as a value; it may not throw, hang, or contradict itself. */
export interface FuzzedParser {
  readonly name: string;
  readonly corpus: Corpus;
  /** Throws if something is wrong. */
  parse(bytes: Uint8Array, rng: Rng): void | Promise<void>;
}

const BLOCK_TOKENS = 4;
const JSON_WORDS = [
  "null",
  "true",
  "-1",
  "1e999",
  "0.5",
  '""',
  "[]",
  "{}",
  '"\\ud800"',
  "9007199254740993",
  '"__proto__":',
];
const text = new TextDecoder();

const CHAT = JSON.stringify({
  model: "demo",
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: 5,
  max_completion_tokens: 7,
  temperature: 0.1,
  cache_salt: "tenant",
  messages: [
    { role: "system", content: "You are warm." },
    {
      role: "user",
      content: [
        { type: "text", text: "hi" },
        { type: "image_url", image_url: { url: "data:," } },
      ],
    },
    { role: "assistant", content: null, tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }] },
  ],
  tools: [{ type: "function", function: { name: "f", parameters: {} } }],
});
const COMPLETION = JSON.stringify({ model: "demo", prompt: "once upon a time", stream: false, max_tokens: 1 });

const jsonBodies: FuzzedParser = {
  name: "json-bodies",
  corpus: corpusOf(
    [CHAT, COMPLETION],
    [...JSON_WORDS, '"messages":', '"prompt":', '"stream":', '"max_tokens":', '"content":'],
  ),
  parse: (bytes) => {
    const body = jsonOf(bytes);
    if (body === undefined) return;
    for (const kind of ["chat", "completion"] as const) {
      const { request } = parseGenerationRequest(kind, body);
      if (request === undefined) continue;
      new WordTokenizer().encode(request.prompt);
      // What is sent on must still be what was sent in, with the usage asked for.
      const asked = jsonOf(withUsageAsked(bytes, body as object));
      must(parseGenerationRequest(kind, asked).request?.includesUsage === true, "the usage is not asked for");
      if (continuationObstacle(kind, body as object) !== undefined) continue;
      const rest = continuedBody(kind, body as object, { text: "so far", tokens: 2 });
      must(parseGenerationRequest(kind, rest).request !== undefined, "the rest of an answer cannot be asked for");
    }
  },
};

const PIECE = sseEvent('{"id":"x","choices":[{"index":0,"delta":{"content":"warm "}}]}');
const HEAD = { kind: "chat", id: "x", model: "demo", createdSeconds: 0 } as const;
const USAGE = sseEvent(encodeUsageEvent(HEAD, { promptTokens: 3, outputTokens: 2, cachedTokens: 1 }));

const sseBytes: FuzzedParser = {
  name: "sse-bytes",
  corpus: corpusOf(
    [
      PIECE + PIECE + USAGE + SSE_DONE,
      `: ping\r\n\r\nevent: kv\ndata: {}\n\n${PIECE}`,
      sseEvent('{"error":{"message":"no"}}'),
    ],
    ["data:", "data: [DONE]", "\n\n", "\r\n\r\n", "event:", '"content":"', '"delta":', '"usage":', ...JSON_WORDS],
  ),
  parse: (bytes, rng) => {
    const whole = new SseScanner();
    const kept = Buffer.concat([whole.relay(bytes), whole.finish()]);
    const cut = new SseScanner();
    const at = rng.below(bytes.length + 1);
    const pieces = Buffer.concat([cut.relay(bytes.slice(0, at)), cut.relay(bytes.slice(at)), cut.finish()]);
    must(whole.contentEvents === cut.contentEvents, "content depends on where chunks are cut");
    must(kept.equals(pieces), "what is passed on depends on where chunks are cut");
    const dropping = new SseScanner({ dropsUsage: true });
    dropping.relay(bytes);
    dropping.finish();
    new EventStreamReader().push(bytes);
  },
};

const OPENING = sseEvent('{"id":"x","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}');

/** A stream that is cut and goes on: whatever an engine has sent is what another goes on from, and what is joined to it. */
const continuedStreams: FuzzedParser = {
  name: "continued-streams",
  corpus: corpusOf(
    [
      OPENING + PIECE + PIECE + USAGE + SSE_DONE,
      PIECE + sseEvent('{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"stop"}]}'),
      PIECE + sseEvent('{"error":{"message":"no"}}'),
    ],
    ["data:", "\n\n", '"role":', '"content":"', '"usage":', '"prompt_tokens":', '"completion_tokens":', ...JSON_WORDS],
  ),
  parse: (bytes) => {
    const transcript = new StreamTranscript();
    const passed = transcript.relay(bytes);
    must(Buffer.from(bytes).subarray(0, passed.length).equals(passed), "what is passed on is not what came");
    must(transcript.said.tokens >= 0, "less than nothing was said");
    const joined = new StreamSplice(transcript).relay(bytes);
    // Whoever reads it must be able to read on.
    new SseScanner().relay(joined);
  },
};

const hashes = Uint32Array.of(1, 2, 3, 4);
const tokens = Uint32Array.of(1, 2, 3, 4, 5, 6, 7, 70_000);
const STORED = { kind: "stored", parent: Uint32Array.of(9, 9), engine: hashes, local: hashes, tier: "device" } as const;
const REMOVED = { kind: "removed", engine: hashes, tier: "host" } as const;
const BATCH_HEAD = { timestampSeconds: 1.5, dpRank: 1, blockTokens: BLOCK_TOKENS };
const changes = [
  { change: STORED, content: { tokens } },
  { change: REMOVED },
  { change: { kind: "cleared", tier: "device" } },
] as const;
const msgpackBatches = [encodeEngineBatch(BATCH_HEAD, changes), encodeEngineBatch(BATCH_HEAD, changes.slice(0, 1))];

const msgpackEvents: FuzzedParser = {
  name: "msgpack-events",
  corpus: corpusOf(msgpackBatches, [
    "BlockStored",
    "BlockRemoved",
    "block_hashes",
    "token_ids",
    // An array, a binary and a map that say they have four thousand million entries.
    Uint8Array.of(0xdd, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0xc6, 0xff, 0xff, 0xff, 0xff),
    Uint8Array.of(0xdf, 0xff, 0xff, 0xff, 0xff),
  ]),
  parse: (bytes) => {
    const decoder = new EngineDecoder(BLOCK_TOKENS);
    decoder.decode(bytes);
    // Whatever was fed before, good bytes are read as ever.
    const good = decoder.decode(msgpackBatches[0]);
    must(good?.changes.length === 3 && good.undecodable === 0, "good events are misread after bad ones");
  },
};

const EVENT = { ...STORED, incarnation: "1", eventId: 7, more: [REMOVED] } as const;
const SNAPSHOT = {
  incarnation: "1",
  lastEventId: 7,
  runs: [{ tier: "device", sequence: hashes, engine: hashes }],
} as const;

const jsonEvents: FuzzedParser = {
  name: "json-events",
  corpus: corpusOf(
    [
      encodeKvEvent(EVENT, 1),
      `[${encodeKvEvent(EVENT)}]`,
      encodeSnapshot(SNAPSHOT),
      '{"incarnation":"1","lastEventId":3,"nextEventId":4}',
      '{"running":1,"waiting":2,"kvUsage":0.5,"batchSlots":4,"kvBlocks":8}',
    ],
    [...JSON_WORDS, '"engine":', '"local":', '"parent":', '"eventId":', "0123456789abcdef"],
  ),
  parse: (bytes) => {
    const input = text.decode(bytes);
    for (const decode of [decodeStreamedEvent, decodeKvEvents, decodeSnapshot, decodeStreamHead, decodeLoad])
      decode(input);
  },
};

const tensorRtEvents: FuzzedParser = {
  name: "tensorrt-events",
  corpus: corpusOf(
    [
      `[${encodeTensorRtEvent(EVENT, tokens, BLOCK_TOKENS)},${encodeTensorRtEvent({ ...REMOVED, incarnation: "1", eventId: 8 }, tokens, 4)}]`,
    ],
    [
      ...JSON_WORDS,
      '"block_hash":',
      '"tokens":',
      '"mm_keys":',
      '"window_size":',
      '"attention_dp_rank":',
      "18446744073709551616",
    ],
  ),
  parse: (bytes) => {
    const answer = new TensorRtDecoder({ blockTokens: BLOCK_TOKENS }).decode(text.decode(bytes));
    for (const { changes: found } of answer?.events ?? []) {
      for (const change of found) {
        if (change.kind === "stored") must(change.engine.length === change.local?.length, "hashes and blocks differ");
      }
    }
  },
};

const natsFrames: FuzzedParser = {
  name: "nats-frames",
  corpus: corpusOf(
    ['{"path":"/v1/completions","headers":{"a":"b"},"bytes":2}\n{}', '{"status":200,"headers":{}}', "abort _INBOX.1.2"],
    [...JSON_WORDS, '"path":', '"bytes":', "\n", " "],
  ),
  parse: (bytes) => {
    readRequestHead(bytes);
    readAnswerHead(bytes);
    readControl(text.decode(bytes));
  },
};

const NEWS = [
  { kind: "placed", request: "r1", replica: "a", promptTokens: 40, cachedTokens: 16, sequence: hashes },
  { kind: "grew", request: "r1", tokens: 16 },
  { kind: "ended", request: "r2" },
] as const;

const peerMessages: FuzzedParser = {
  name: "peer-messages",
  corpus: corpusOf(
    (["news", "alive"] as const).map((kind) =>
      encodePeerMessage({ from: "gateway-1", blockTokens: 16, kind, news: NEWS, open: ["r1", "r3"] }),
    ),
    [...JSON_WORDS, '"placed"', '"version":2', '"news":', '"open":', Uint8Array.of(0xff, 0xff, 0xff, 0xff)],
  ),
  parse: (bytes) => {
    const { message } = decodePeerMessage(bytes);
    if (message === undefined) return;
    const again = decodePeerMessage(encodePeerMessage(message)).message;
    must(JSON.stringify(again) === JSON.stringify(message), "a message changes when it is told on");
  },
};

const prometheusText: FuzzedParser = {
  name: "prometheus-text",
  corpus: corpusOf(
    [
      'vllm:num_requests_running{model_name="demo",engine="0"} 1.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n# HELP x\n',
    ],
    ["vllm:num_requests_running", "sglang:token_usage", "{", "}", '="', "NaN", "+Inf", "\n", "\\"],
  ),
  parse: (bytes) => {
    engineLoadOf(text.decode(bytes), 0);
  },
};

const generation = new Generation({
  tokens: { tokensOf: (prompt) => new WordTokenizer().encode(prompt) },
  blockTokens: BLOCK_TOKENS,
  maxBodyBytes: 100_000,
  asksUsage: true,
  idPrefix: "fuzz-",
});

/** Lines of `name: value` become the headers of a request, as Node would hand them over. */
const headers: FuzzedParser = {
  name: "headers",
  corpus: corpusOf(
    [
      "x-warmpath-session: abc\nx-warmpath-priority: 3\nx-warmpath-start-within-ms: 500\nauthorization: Bearer x",
      "x-dynamo-session-id: 1\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nx-request-id: r",
    ],
    ["x-warmpath-priority: ", "x-warmpath-start-within-ms: ", "1e999", "-0", "NaN", "0x10", "\n", "\t", "__proto__: "],
  ),
  parse: async (bytes) => {
    const lines = text.decode(bytes).split("\n");
    const fields = lines.map((line) => [
      line.split(":", 1)[0].trim().toLowerCase(),
      line.slice(line.indexOf(":") + 1).trim(),
    ]);
    const request = Object.assign(Readable.from([Buffer.from(CHAT)]), {
      headers: Object.fromEntries(fields) as object,
    });
    const answered: string[] = [];
    const response = { setHeader: () => response, writeHead: () => response, end: () => answered.push("end") };
    const { prepared } = await generation.prepare(
      "chat",
      "/v1/chat/completions",
      request as unknown as IncomingMessage,
      response as unknown as ServerResponse,
    );
    must(prepared !== undefined, "headers must not make a good body a bad one");
    const { priority = 0, startWithinMs = 0 } = prepared?.offered ?? {};
    must(Number.isFinite(priority) && Number.isFinite(startWithinMs), "a header became a number that is none");
  },
};

const traceFiles: FuzzedParser = {
  name: "trace-files",
  corpus: corpusOf(
    [
      '{"timestamp": 27482, "input_length": 1300, "output_length": 52, "hash_ids": [46, 47, 48]}\n{"timestamp": 30535, "input_length": 6, "output_length": 1, "hash_ids": [46]}\n',
    ],
    [...JSON_WORDS, '"timestamp":', '"input_length":', '"output_length":', '"hash_ids":', "\n"],
  ),
  parse: (bytes) => {
    try {
      const rows = parseMooncakeTrace(text.decode(bytes), "fuzz", 512);
      // What was read can be written and read again.
      const again = parseMooncakeTrace(rows.map((row) => writeMooncakeRow(row)).join("\n"), "fuzz", 512);
      must(again.length === rows.length, "rows change when they are written");
    } catch (error) {
      if (!WarmpathError.isInstance(error) || error.code !== "WP_INVALID_INPUT") throw error;
    }
  },
};

export const PARSERS: readonly FuzzedParser[] = [
  jsonBodies,
  sseBytes,
  continuedStreams,
  msgpackEvents,
  jsonEvents,
  tensorRtEvents,
  natsFrames,
  peerMessages,
  prometheusText,
  headers,
  traceFiles,
];

function must(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(otherwise);
}
