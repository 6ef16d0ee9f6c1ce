import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** What waits on a connection behind the answer that is being given there. */
interface Line {
  readonly waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
  /** The newest request is not waited for any longer: what is done instead of serving it. */
  end: (() => void) | undefined;
  isToBePaused: boolean;
}

/** With so many requests waiting on a connection, nothing more is read of it. */
const MOST_WAITING = 16;

/**
 * Serves the requests of a connection one after the other. A client may send the next before it has its answer. Node keeps that
 * answer apart from the connection until its turn, so whoever gives it hears neither that the client reads slowly nor that it has
 * left, and works for nobody. So a request is served when its answer has the connection, and never if that is gone by then.
 */
export class RequestOrder {
  readonly #serve: RequestListener;
  readonly #served = new WeakMap<Duplex, ServerResponse>();
  /** There is one for as long as the end of the answer before it is listened for. */
  readonly #lines = new WeakMap<Duplex, Line>();

  constructor(serve: RequestListener) {
    this.#serve = serve;
  }

  /** Serves a request now, or after those before it. */
  take(request: IncomingMessage, response: ServerResponse): void {
    // Whatever is done to an answer that has ended, no client may end the process with it.
    response.on("error", ignore);
    if (response.socket === null) this.#wait(request, response);
    else this.#begin(request, response);
  }

  /** The latest answer that a connection was given for, which may have ended. */
  servedOn(socket: Duplex): ServerResponse | undefined {
    return this.#served.get(socket);
  }

  /** The newest request of a connection will not be one any more: those before it are answered, and then `end` is called, once. */
  endBeforeNewest(socket: Socket, served: ServerResponse, end: () => void): void {
    this.#lineOf(socket, served).end ??= end;
  }

  /** Whether nothing more is served on a connection than what has come. */
  isEnding(socket: Duplex): boolean {
    return this.#lines.get(socket)?.end !== undefined;
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    this.#served.set(request.socket, response);
    this.#serve(request, response);
  }

  #wait(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const served = this.#served.get(socket);
    // Something is being answered, or this answer would have the connection.
    if (served === undefined) return;
    const line = this.#lineOf(socket, served);
    line.waiting.push({ request, response });
    if (!line.isToBePaused && line.waiting.length >= MOST_WAITING) pauseSoon(socket, line);
  }

  #lineOf(socket: Socket, served: ServerResponse): Line {
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = { waiting: [], end: undefined, isToBePaused: false };
      this.#lines.set(socket, line);
      this.#listenForEnd(socket, served, line);
    }
    return line;
  }

  #listenForEnd(socket: Socket, served: ServerResponse, line: Line): void {
    // After all others who listen for it: what the answer held is given back before the next one needs it.
    served.once("close", () => process.nextTick(() => this.#next(socket, line)));
  }

  #next(socket: Socket, line: Line): void {
    const next = line.waiting.shift();
    const isEnd = line.end !== undefined && next?.request.complete !== true;
    // Without the connection an answer has no turn any more: the one before was the last.
    if (isEnd || next === undefined || next.response.socket === null || socket.destroyed) {
      this.#lines.delete(socket);
      if (isEnd) line.end?.();
      return;
    }
    this.#listenForEnd(socket, next.response, line);
    if (socket.isPaused()) socket.resume();
    this.#begin(next.request, next.response);
  }
}

/** Not at once: Node reads on by itself at the end of each request that it has taken apart. */
function pauseSoon(socket: Socket, line: Line): void {
  line.isToBePaused = true;
  setImmediate(() => {
    line.isToBePaused = false;
    if (line.waiting.length >= MOST_WAITING) socket.pause();
  });
}

function ignore(): void {}
