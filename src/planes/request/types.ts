/**
 * The request plane's port: how a request reaches a worker and its answer comes back. The shapes are those of undici's
 * `dispatch`, so that over HTTP nothing stands in between.
 */

/** What is sent to a worker. */
export interface PlaneRequest {
  readonly method: "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Called when nothing reads the memory of the body any more; never by a plane that cannot tell. */
  readonly bodyRead?: (() => void) | undefined;
}

/** Lets whoever reads an answer hold it back, or give it up. */
export interface AnswerController {
  pause(): void;
  resume(): void;
  /** The worker is told to stop; `onResponseError` is the last call, with this reason. */
  abort(reason: Error): void;
}

export type AnswerHeaders = Record<string, string | string[] | undefined>;

/** Takes an answer as it comes; exactly one of `onResponseEnd` and `onResponseError` is the last call. */
export interface AnswerHandler {
  /** The request is on its way; not called for a worker that cannot be reached. */
  onRequestStart(controller: AnswerController, context: unknown): void;
  onResponseStart(controller: AnswerController, status: number, headers: AnswerHeaders): void;
  onResponseData(controller: AnswerController, chunk: Buffer): void;
  onResponseEnd(controller: AnswerController, trailers: AnswerHeaders): void;
  /** `code` of the error tells a worker that cannot be reached from one that broke off, as Node's own codes do. */
  onResponseError(controller: AnswerController, error: Error): void;
}

/** The way to one worker. */
export interface Upstream {
  /** Sends a request; may fail before it returns. */
  dispatch(request: PlaneRequest, handler: AnswerHandler): unknown;
}

/** The way to all workers. */
export interface RequestPlane {
  /** The way to a worker, by its origin or by its name, whichever the plane goes by. */
  get(origin: string, worker: string): Upstream;
  /** Gives up what belongs to workers that nothing was sent to for long; called every now and then with the time. */
  prune(nowMs: number): void;
  /** Ends what is under way. */
  close(): Promise<void>;
}
