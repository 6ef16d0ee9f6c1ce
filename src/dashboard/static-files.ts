import { readFile, readdir } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";

/** A file of the page, ready to be sent. */
export interface StaticFile {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** Its name changes with its content, so it can be kept for ever. */
  readonly isImmutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Reads the built page; by path as a browser asks for it. Nothing outside the folder can be asked for. */
export async function readStaticFiles(folder: string): Promise<ReadonlyMap<string, StaticFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry): Promise<[string, StaticFile]> => {
        const path = join(entry.parentPath, entry.name);
        const name = relative(folder, path).split(sep).join("/");
        const type = TYPES[extname(name)] ?? "application/octet-stream";
        return [`/${name}`, { bytes: await readFile(path), type, isImmutable: name.startsWith("assets/") }];
      }),
  );
  const byPath = new Map(files);
  const index = byPath.get("/index.html");
  if (index !== undefined) byPath.set("/", index);
  return byPath;
}
