import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import type { Terminal } from "../../terminal.ts";
import { download } from "./download.ts";
import { subCommand, usage } from "./options.ts";
import { PUBLIC_TRACES, publicTrace } from "./public-traces.ts";

interface FetchOptions {
  readonly out?: string;
  readonly url?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `warmpath trace fetch`: downloads a public trace from its authors. */
export function fetchCommand(terminal: Terminal): Command {
  const names = PUBLIC_TRACES.map((trace) => trace.name).join(", ");
  return subCommand("fetch", "Download a public trace from where its authors publish it; its sha256 is checked.", [
    "fetch toolagent",
    "fetch conversation --out conversation.jsonl --url https://mirror.example/conversation_trace.jsonl",
  ])
    .argument("<name>", `which one: ${names}`)
    .option("--out <file>", "where to put it (default: traces/ in WARMPATH_DATA or data)")
    .option("--url <address>", "take it from a mirror; the sha256 must be the same")
    .option("--force", "replace a file of other content")
    .action(async (name: string, options: FetchOptions) => {
      const trace = publicTrace(name);
      const out = options.out ?? join(process.env["WARMPATH_DATA"] || "data", "traces", trace.file);
      const url = options.url ?? trace.url;
      const present = await sha256OfFile(out);
      const isPresent = present === trace.sha256;
      if (present !== undefined && !isPresent && options.force !== true) {
        throw usage(`${out} exists with other content (sha256 ${present}); --force replaces it`);
      }
      if (!isPresent) {
        terminal.printError(`downloading ${url}`);
        await download({ url, sha256: trace.sha256, destination: out });
      }
      const { rows, sha256 } = trace;
      if (options.json === true) {
        terminal.print(JSON.stringify({ name, file: out, url, sha256, rows, downloaded: !isPresent }, null, 2));
        return;
      }
      terminal.print(`${out}${isPresent ? " was there already" : ""}: ${rows} rows, sha256 ${sha256}`);
    });
}

async function sha256OfFile(file: string): Promise<string | undefined> {
  try {
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch (cause) {
    const { code = String(cause) } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw usage(`${file}: ${code === "EISDIR" ? "is a folder, not a file" : `cannot be read (${code})`}`, cause);
  }
}
