import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { WarmpathError } from "../core/errors.ts";

/** A text that conversations open with. */
export interface Starter {
  /** Name of its file. */
  readonly name: string;
  readonly text: string;
}

const EXTENSIONS: ReadonlySet<string> = new Set([".md", ".txt"]);

/** Reads the starters of a folder, one per .md or .txt file, in the order of their names. */
export async function readStarters(folder: string): Promise<readonly Starter[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    const reason =
      code === "ENOENT" ? "no such folder" : code === "ENOTDIR" ? "is not a folder" : `cannot be read (${code})`;
    throw new WarmpathError("WP_INVALID_INPUT", `${folder}: ${reason}`, { cause });
  }
  // What is in the folder about the starters is none.
  const files = names.filter((name) => EXTENSIONS.has(extname(name)) && name !== "README.md").sort();
  if (files.length === 0) throw new WarmpathError("WP_INVALID_INPUT", `${folder}: has no .md or .txt files`);
  return Promise.all(files.map((name) => readStarter(folder, name)));
}

async function readStarter(folder: string, name: string): Promise<Starter> {
  const path = join(folder, name);
  let text: string;
  try {
    text = (await readFile(path, "utf8")).trim();
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    throw new WarmpathError("WP_INVALID_INPUT", `${path}: cannot be read (${code})`, { cause });
  }
  if (text === "") throw new WarmpathError("WP_INVALID_INPUT", `${path}: is empty`);
  return { name, text };
}

/** What a starter is about: its first line, without the marks of a heading. */
export function topicOf({ text }: Starter): string {
  return text
    .slice(0, 400)
    .split("\n", 1)[0]
    .replace(/^#+\s*/, "")
    .trim();
}
