import { readFile } from "node:fs/promises";
import { WarmpathError } from "../../../core/errors.ts";

export interface FollowedFilesOptions<T> {
  /** Paths, by the option that named each. */
  readonly files: Readonly<Record<string, string>>;
  /** Makes something of their texts, or throws with what is wrong; must not repeat what it read. */
  readonly read: (...texts: readonly string[]) => T;
  readonly changed: (value: T) => void;
  /** Told that they were read again, or why not. */
  readonly log: (line: string) => void;
}

/** Files whose changes are followed. */
export interface FollowedFiles<T> {
  readonly first: T;
  close(): void;
}

const LOOK_MS = 1000;

/**
 * Reads files that must be there, and reads them again every so often: watching does not work on the mounts where secrets
 * usually lie. A change that cannot be used is told once and changes nothing.
 */
export async function followFiles<T>({
  files,
  read,
  changed,
  log,
}: FollowedFilesOptions<T>): Promise<FollowedFiles<T>> {
  const names = Object.entries(files);
  const textsNow = (): Promise<string[]> => Promise.all(names.map(([option, path]) => textOf(option, path)));
  const shown = names.map(([option, path]) => `--${option} ${path}`).join(" and ");
  let texts = await textsNow();
  const first = read(...texts);
  let lastProblem: string | undefined;
  const look = async (): Promise<void> => {
    try {
      const before = texts;
      texts = await textsNow();
      if (texts.every((text, i) => text === before[i])) return;
      changed(read(...texts));
      log(`${shown}: read again`);
      lastProblem = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== lastProblem) log(`${message}; what was read before stays in force`);
      lastProblem = message;
    }
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();
  return { first, close: () => clearInterval(timer) };
}

async function textOf(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "does not exist" : `cannot be read (${code ?? "unknown reason"})`;
    throw new WarmpathError("WP_INVALID_INPUT", `--${option} ${path} ${reason}`, { cause });
  }
}
