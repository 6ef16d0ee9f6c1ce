import { WarmpathError, type ErrorCode } from "../../../core/errors.ts";

/** An error of a thread as a message can carry it. */
export interface ThreadFailure {
  readonly message: string;
  readonly stack: string | undefined;
  /** Of an error of ours; whose mistake it is must not depend on where it is noticed. */
  readonly code: ErrorCode | undefined;
  /** Of one of the file system's. */
  readonly system: { readonly code: string; readonly syscall: string } | undefined;
}

export function describeFailure(error: unknown): ThreadFailure {
  if (!(error instanceof Error))
    return { message: String(error), stack: undefined, code: undefined, system: undefined };
  const { message, stack } = error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return {
    message,
    stack,
    code: WarmpathError.isInstance(error) ? error.code : undefined,
    system: code === undefined || syscall === undefined ? undefined : { code, syscall },
  };
}

/** The error that a thread had, as if it had happened here. */
export function failureOf({ message, stack, code, system }: ThreadFailure): Error {
  const error = code === undefined ? new Error(message) : new WarmpathError(code, message);
  if (stack !== undefined) error.stack = stack;
  return Object.assign(error, system);
}

/** What has ended a thread that gave no answer. */
export function endOfThread(error: unknown): WarmpathError {
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === "ERR_WORKER_OUT_OF_MEMORY") {
    const advice =
      "run fewer at a time (--threads), smaller cells, or give more (NODE_OPTIONS=--max-old-space-size=MB)";
    return new WarmpathError("WP_INVALID_INPUT", `a thread ran out of memory: ${advice}`, { cause: error });
  }
  return new WarmpathError("WP_INVALID_STATE", `a thread has ended: ${message}`, { cause: error });
}
