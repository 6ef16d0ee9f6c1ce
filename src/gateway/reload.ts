/** How it went when settings were to be changed while serving. */
export interface ReloadOutcome {
  /** In milliseconds since 1970. */
  readonly atMs: number;
  /** False if something was wrong: then nothing has changed. */
  readonly isApplied: boolean;
  /** Settings that have other values now. */
  readonly changed: readonly string[];
  /** Settings that are written differently and stay as they are until a restart. */
  readonly needRestart: readonly string[];
  /** What was wrong, in one line. */
  readonly problem: string | null;
}

/** Whoever can read the settings again. */
export interface Reloading {
  /** How the last time went, and when; undefined before the first. */
  readonly last: ReloadOutcome | undefined;
  /** Times so far, by whether it went well. */
  readonly counts: { readonly applied: number; readonly refused: number };
  reload(): Promise<ReloadOutcome>;
}
