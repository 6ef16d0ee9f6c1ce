import { randomUUID } from "node:crypto";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { NatsLink } from "../nats/connection.ts";
import { requestSubjects, type RequestSubjects } from "../nats/subjects.ts";
import { NatsAnswer, requestError } from "./nats/answer.ts";
import { type AnswerKind, requestMessages, writeControl } from "./parts/nats-frames.ts";
import type { AnswerHandler, PlaneRequest, RequestPlane, Upstream } from "./types.ts";

export interface NatsRequestPlaneOptions {
  /** The connection; whoever made it closes it. */
  readonly link: NatsLink;
  /** How long a worker may give no sign of life before it is taken for dead. */
  readonly silenceMs?: number;
  /** How often this gateway gives one, and looks for others'. */
  readonly beatMs?: number;
  readonly nowMs?: () => number;
}

interface OpenRequest {
  readonly answer: NatsAnswer;
  readonly subjects: RequestSubjects;
}

const DEFAULT_SILENCE_MS = 5000;
const DEFAULT_BEAT_MS = 1000;
const NO_RESPONDERS = 503;

/**
 * Sends requests to our own workers over NATS, by name. A broker hides what a connection of one's own would show, that the other
 * end is gone, so both ends give signs of life; a lost connection to the server ends what is under way.
 */
export class NatsRequestPlane implements RequestPlane {
  readonly #link: NatsLink;
  readonly #silenceMs: number;
  readonly #nowMs: () => number;
  readonly #open = new Map<string, OpenRequest>();
  /** All answers come under this subject and the number of the request. */
  readonly #inbox = `_INBOX.${randomUUID()}`;
  readonly #upstreams = new Map<string, Upstream>();
  readonly #stopWatching: () => void;
  readonly #beat: NodeJS.Timeout;
  #requests = 0;

  constructor(options: NatsRequestPlaneOptions) {
    this.#link = options.link;
    this.#silenceMs = options.silenceMs ?? DEFAULT_SILENCE_MS;
    this.#nowMs = options.nowMs ?? ((): number => performance.now());
    this.#stopWatching = options.link.watch({
      up: (connection, isFirst) => (isFirst ? this.#subscribe(connection) : undefined),
      down: () => this.#failAll("ENETDOWN", "the connection to the NATS server was lost"),
    });
    this.#beat = setInterval(() => this.#giveSigns(), options.beatMs ?? DEFAULT_BEAT_MS);
    this.#beat.unref();
  }

  get(_origin: string, worker: string): Upstream {
    let upstream = this.#upstreams.get(worker);
    if (upstream === undefined) {
      const subjects = requestSubjects(this.#link.prefix, worker);
      upstream = { dispatch: (request, handler) => this.#dispatch(subjects, request, handler) };
      this.#upstreams.set(worker, upstream);
    }
    return upstream;
  }

  /** Nothing is kept open for a worker that is not used. */
  prune(): void {}

  close(): Promise<void> {
    clearInterval(this.#beat);
    this.#stopWatching();
    this.#failAll("ECONNRESET", "the gateway was closed");
    return Promise.resolve();
  }

  #dispatch(subjects: RequestSubjects, { path, headers, body }: PlaneRequest, handler: AnswerHandler): void {
    const id = String(++this.#requests);
    const reply = `${this.#inbox}.${id}`;
    const answer = new NatsAnswer({
      handler,
      control: (verb) => this.#link.connection?.publish(subjects.control, writeControl(verb, reply)),
      over: () => this.#open.delete(id),
      nowMs: this.#nowMs,
    });
    const { connection } = this.#link;
    if (connection === undefined) {
      answer.fail(requestError("ENETDOWN", "the NATS server cannot be reached"));
      return;
    }
    this.#open.set(id, { answer, subjects });
    handler.onRequestStart(answer, undefined);
    const messages = requestMessages({ path, headers }, body, this.#link.partBytes);
    if (messages === undefined) {
      answer.fail(requestError("ENETDOWN", "the headers are larger than a message on the NATS server may be"));
      return;
    }
    for (const message of messages) if (!answer.isOver) connection.publish(subjects.requests, message, { reply });
  }

  #subscribe(connection: NatsConnection): void {
    connection.subscribe(`${this.#inbox}.>`, {
      callback: (error, message) => {
        if (error === null) this.#heard(message);
      },
    });
  }

  #heard(message: Msg): void {
    const [id, kind] = message.subject.slice(this.#inbox.length + 1).split(".");
    const answer = this.#open.get(id)?.answer;
    if (answer === undefined) return;
    if (kind !== undefined) answer.heard(kind as AnswerKind, message.data);
    else if (message.headers?.code === NO_RESPONDERS) {
      answer.fail(requestError("ECONNREFUSED", "no worker of this name listens on the NATS server"));
    }
  }

  #giveSigns(): void {
    const nowMs = this.#nowMs();
    const controls = new Set<string>();
    for (const { answer, subjects } of this.#open.values()) {
      if (nowMs - answer.heardMs > this.#silenceMs) {
        answer.abort(requestError("ECONNRESET", `the worker gave no sign of life for ${this.#silenceMs} ms`));
      } else controls.add(subjects.control);
    }
    for (const control of controls) this.#link.connection?.publish(control, writeControl("alive", this.#inbox));
  }

  #failAll(code: "ECONNRESET" | "ENETDOWN", reason: string): void {
    for (const { answer } of this.#open.values()) answer.fail(requestError(code, reason));
  }
}
