/** What a listener heard, in order, and a way to wait for it without sleeping. */
export class Heard {
  readonly notes: string[] = [];
  #waiting: (() => void)[] = [];

  note(what: string): void {
    this.notes.push(what);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Resolves once this was heard. */
  async until(what: string): Promise<void> {
    while (!this.notes.includes(what)) await this.next();
  }

  /** Resolves when anything more is heard. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}
