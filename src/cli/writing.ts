import { WarmpathError } from "../core/errors.ts";

/**
 * Writes to a place that an option names, such as `--out results`. What the file system has against it is a mistake of
 * whoever named the place: one line and exit code 2.
 */
export async function writingTo<Written>(place: string, write: () => Promise<Written>): Promise<Written> {
  try {
    return await write();
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall === undefined || code === undefined) throw cause;
    const reason = code === "ENOENT" ? "no such folder" : code;
    throw new WarmpathError("WP_INVALID_INPUT", `${place}: cannot be written (${reason})`, { cause });
  }
}
