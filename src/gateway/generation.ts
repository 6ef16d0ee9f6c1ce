import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { type BlockIdentity, fullBlocks, sequenceHashes } from "../core/hash.ts";
import type { PromptTokens } from "../planes/tokens/types.ts";
import { isLongPrompt } from "../tokenizer/long-prompt.ts";
import { jsonOf } from "../wire/body.ts";
import {
  type GenerationKind,
  type GenerationRequest,
  parseGenerationRequest,
  withCacheSalt,
  withUsageAsked,
} from "../wire/openai-request.ts";
import type { AnsweredPrompt } from "./answered-prompt.ts";
import { BodyBuffers } from "./body-buffers.ts";
import type { OfferedRequest } from "./decider.ts";
import type { PreparedRequest } from "./exchange.ts";
import { HeardAnswer } from "./heard-answer.ts";
import { LentBody } from "./lent-body.ts";
import { closeAfter } from "./lingering-close.ts";
import { type GatewayErrorCode, respondWithError } from "./openai-errors.ts";
import { isTooLarge, readBody, waitsToSend } from "./request-body.ts";
import { StreamContinuity } from "./stream-continuity.ts";

export interface GenerationOptions {
  readonly tokens: Pick<PromptTokens, "tokensOf" | "areAskedFor">;
  /** Tokens in a KV block, as the router was told. */
  readonly blockTokens: number;
  readonly maxBodyBytes: number;
  /** Asks engines for the usage of streams, so that predictions can be checked; it is kept from clients that did not. */
  readonly asksUsage: boolean;
  /** Put in front of the numbers of requests, where several proxies share a decider. */
  readonly idPrefix: string;
  /** Continues streams whose worker is lost, where the client does not say otherwise. */
  readonly migratesStreams?: boolean | undefined;
  /** What engines are sent as `authorization`, if anything; without this function they are sent the client's. */
  readonly engineAuthorization?: (() => string | undefined) | undefined;
  /** Keeps the caches of keys apart, by a salt that has the key's name in it. */
  readonly saltsByKey?: boolean | undefined;
  /** Names of adapters among the models; what engines cache for one is of no use to another. */
  readonly adapters?: (() => readonly string[]) | undefined;
}

/** The headers of a client that concern the worker too. */
const PASSED_ON: readonly string[] = ["content-type", "accept", "traceparent", "tracestate", "x-request-id"];

/** A request made ready, or the code of the error that it was answered with. */
export type Preparation =
  | {
      readonly prepared: PreparedRequest;
      /**
       * Begins to hear the answer; it keeps the whole body, so it is kept only by who needs it. Undefined where the answer's tokens
       * would not be there in time.
       */
      readonly hearing: (() => HeardAnswer) | undefined;
      readonly refusal?: undefined;
    }
  | { readonly prepared?: undefined; readonly refusal: GatewayErrorCode | "gone" };

/** Reads requests and makes them ready: what is asked for, its tokens, its block hashes, and the bytes to send. */
export class Generation {
  readonly #buffers = new BodyBuffers();
  readonly #take = (bytes: number): Uint8Array => this.#buffers.take(bytes);
  readonly #giveBack = (bytes: Uint8Array): void => this.#buffers.giveBack(bytes);
  #options: GenerationOptions;
  #requests = 0;

  constructor(options: GenerationOptions) {
    this.#options = options;
  }

  /** Changes what may change while requests come. */
  configure(options: Pick<GenerationOptions, "maxBodyBytes" | "asksUsage">): void {
    this.#options = { ...this.#options, ...options };
  }

  /** Makes a request ready, or answers it with what is wrong with it; `key` is the name of the one it came with. */
  async prepare(
    kind: GenerationKind,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    key?: string,
  ): Promise<Preparation> {
    const arrivedMs = performance.now();
    const { maxBodyBytes } = this.#options;
    if (waitsToSend(request) && !isTooLarge(request, maxBodyBytes)) response.writeContinue();
    const read = await readBody(request, maxBodyBytes);
    const refuse = (code: GatewayErrorCode, message: string, param?: string): Preparation => {
      respondWithError(response, code, message, param);
      return { refusal: code };
    };
    if (read.kind === "gone") return { refusal: "gone" };
    if (read.kind === "too-large") {
      closeAfter(response);
      return refuse("body_too_large", `the body has more than ${maxBodyBytes} bytes`);
    }
    const readMs = performance.now();
    const given = jsonOf(read.bytes);
    if (given === undefined) return refuse("invalid_json", "the body is not JSON");
    const parsed = parseGenerationRequest(kind, given);
    if (parsed.problem !== undefined) return refuse("invalid_request", parsed.problem.message, parsed.problem.param);
    const { request: wanted, salted } = this.#salted(parsed.request, read.bytes, given as object, key);
    const parsedMs = performance.now();
    const encoded = this.#options.tokens.tokensOf(wanted.prompt);
    // A promise is waited for only where there is one: a turn of the event loop is time to the first token.
    const tokens = encoded instanceof Uint32Array ? encoded : await encoded;
    const tokenizedMs = performance.now();
    const offered = this.#offered(wanted, tokens, request.headers, parsedMs - readMs, tokenizedMs - parsedMs);
    const asksUsage = wanted.isStreaming && !wanted.includesUsage && this.#options.asksUsage;
    const body = asksUsage ? withUsageAsked(salted.bytes, salted.body, this.#take) : salted.bytes;
    const outgoing = {
      path,
      headers: this.#headers(request.headers),
      body,
      dropsUsage: asksUsage,
      lent: asksUsage ? new LentBody(body, this.#giveBack) : undefined,
    };
    const keyed = key === undefined ? offered : { ...offered, key };
    const isContinued = wanted.isStreaming && this.#isToBeContinued(request.headers);
    const answered = this.#answeredPrompt(wanted, salted.body);
    const prepared = { offered: keyed, outgoing, isStreaming: wanted.isStreaming, arrivedMs };
    const areAtHand = this.#options.tokens.areAskedFor !== true;
    const isHeard = areAtHand && wanted.prompt.kind !== "tokens" && !isLongPrompt(wanted.prompt);
    const hearing = isHeard ? (): HeardAnswer => new HeardAnswer(answered, offered) : undefined;
    if (!isContinued) return { prepared, hearing };
    return { prepared: { ...prepared, continuity: new StreamContinuity({ ...answered, asksUsage }) }, hearing };
  }

  #isToBeContinued(headers: IncomingHttpHeaders): boolean {
    const wish = headers["x-warmpath-migrate"];
    return wish === "true" || (this.#options.migratesStreams === true && wish !== "false");
  }

  /** What it takes to put an answer behind its prompt. */
  #answeredPrompt(wanted: GenerationRequest, body: object): AnsweredPrompt {
    const { tokens, blockTokens } = this.#options;
    return { kind: wanted.kind, body, identity: this.#identity(wanted), tokens, blockTokens };
  }

  /** What tells the blocks of this request from those of others with the same text. */
  #identity({ model, cacheSalt }: GenerationRequest): BlockIdentity {
    const isAdapter = this.#options.adapters?.().includes(model) === true;
    return { ...(isAdapter && { loraName: model }), ...(cacheSalt !== undefined && { cacheSalt }) };
  }

  /** The request and its body with the salt that its key demands; both stay as they are where none does. */
  #salted(
    wanted: GenerationRequest,
    bytes: Uint8Array,
    body: object,
    key: string | undefined,
  ): { request: GenerationRequest; salted: { bytes: Uint8Array; body: object } } {
    if (key === undefined || this.#options.saltsByKey !== true) return { request: wanted, salted: { bytes, body } };
    // Names of keys have no colon, so no choice of name and salt looks like another.
    const cacheSalt = wanted.cacheSalt === undefined ? `key:${key}` : `key:${key}:${wanted.cacheSalt}`;
    const salted = { bytes: withCacheSalt(bytes, body, cacheSalt), body: { ...body, cache_salt: cacheSalt } };
    return { request: { ...wanted, cacheSalt }, salted };
  }

  #headers(headers: IncomingHttpHeaders): Record<string, string> {
    const kept: Record<string, string> = {};
    for (const name of PASSED_ON) {
      const value = headers[name];
      if (typeof value === "string") kept[name] = value;
    }
    const { engineAuthorization } = this.#options;
    const authorization = engineAuthorization === undefined ? headers.authorization : engineAuthorization();
    if (authorization !== undefined) kept["authorization"] = authorization;
    return kept;
  }

  #offered(
    wanted: GenerationRequest,
    tokens: Uint32Array,
    headers: IncomingHttpHeaders,
    parseMs: number,
    tokenizeMs: number,
  ): OfferedRequest {
    const { blockTokens, idPrefix } = this.#options;
    const startedMs = performance.now();
    const sequence = sequenceHashes(tokens, blockTokens, this.#identity(wanted));
    const hashMs = performance.now() - startedMs;
    const session = headers["x-warmpath-session"] ?? headers["x-dynamo-session-id"];
    const priority = numberIn(headers["x-warmpath-priority"]);
    const startWithinMs = numberIn(headers["x-warmpath-start-within-ms"]);
    return {
      id: `${idPrefix}${++this.#requests}`,
      promptTokens: tokens.length,
      sequence,
      blocks: fullBlocks(tokens.length, blockTokens),
      preparation: { parseMs, tokenizeMs, hashMs },
      ...(wanted.maxOutputTokens !== undefined && { maxOutputTokens: wanted.maxOutputTokens }),
      ...(typeof session === "string" && { session }),
      ...(priority !== undefined && { priority }),
      ...(startWithinMs !== undefined && { startWithinMs }),
    };
  }
}

/** The number in a header; undefined where there is none. */
function numberIn(header: string | string[] | undefined): number | undefined {
  if (typeof header !== "string" || header.trim() === "") return undefined;
  const value = Number(header);
  return Number.isFinite(value) ? value : undefined;
}
