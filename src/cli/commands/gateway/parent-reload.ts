import type { ReloadOutcome, Reloading } from "../../../gateway/reload.ts";
import { type ReloadHistory, tellParent } from "./process-roles.ts";

/** Has the settings read again by the process that started this one, and knows how that went. */
export class ParentReload implements Reloading {
  #history: ReloadHistory | undefined;
  readonly #waiting: ((outcome: ReloadOutcome) => void)[] = [];

  constructor(history: ReloadHistory | undefined) {
    this.#history = history;
  }

  get last(): ReloadOutcome | undefined {
    return this.#history?.last;
  }

  get counts(): { readonly applied: number; readonly refused: number } {
    const { applied = 0, refused = 0 } = this.#history ?? {};
    return { applied, refused };
  }

  reload(): Promise<ReloadOutcome> {
    tellParent({ kind: "reload" });
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** It was done, whoever asked for it. */
  heard(history: ReloadHistory): void {
    this.#history = history;
    for (const resolve of this.#waiting.splice(0)) resolve(history.last);
  }
}
