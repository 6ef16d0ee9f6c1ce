import type { AttemptEnd, DecidedRequest, Decider, OfferedRequest, Readiness } from "../decider.ts";

/** Stands in front of a decider and does as it does; what differs is overridden. */
export abstract class ForwardingDecider implements Decider {
  protected readonly inner: Decider;

  constructor(inner: Decider) {
    this.inner = inner;
  }

  abstract offer(request: OfferedRequest, decided: DecidedRequest): void;

  sent(id: string): void {
    this.inner.sent(id);
  }

  firstToken(id: string): void {
    this.inner.firstToken(id);
  }

  grew(id: string, tokens: number): void {
    this.inner.grew(id, tokens);
  }

  ended(id: string, end: AttemptEnd): void {
    this.inner.ended(id, end);
  }

  refused(reason: string, key?: string): void {
    this.inner.refused(reason, key);
  }

  invalid(code: string): void {
    this.inner.invalid(code);
  }

  models(): readonly string[] {
    return this.inner.models();
  }

  adapters(): readonly string[] {
    return this.inner.adapters();
  }

  readiness(): Readiness {
    return this.inner.readiness();
  }

  metricsText(): Promise<string> {
    return this.inner.metricsText();
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
