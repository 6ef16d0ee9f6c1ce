import { promptHash, type SentPrompts } from "../../../../lab/live/prompt-ledger.ts";
import type { CompletedAnswer, PromptWriter, WrittenPrompt } from "../../../../loadgen/types.ts";
import type { WorkloadRequest } from "../../../../workload/request.ts";

/** A writer of prompts that keeps a hash of everything it has written. */
export class HashedPrompts implements PromptWriter {
  readonly #writer: PromptWriter;
  readonly #sent = new Map<string, string>();

  constructor(writer: PromptWriter) {
    this.#writer = writer;
  }

  /** By the id of the request. */
  get sent(): SentPrompts {
    return this.#sent;
  }

  write(request: WorkloadRequest): WrittenPrompt {
    const written = this.#writer.write(request);
    this.#sent.set(String(request.id), promptHash(written.json));
    return written;
  }

  needsAnswer(request: WorkloadRequest): boolean {
    return this.#writer.needsAnswer(request);
  }

  answered(request: WorkloadRequest, answer: CompletedAnswer, signal: AbortSignal): Promise<void> | void {
    return this.#writer.answered(request, answer, signal);
  }

  forget(session: number): void {
    this.#writer.forget(session);
  }
}
