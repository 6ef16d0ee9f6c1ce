import { randomBytes } from "node:crypto";
import { Command } from "commander";
import { stringify } from "yaml";
import { z } from "zod";
import { type ApiKey, KEY_PREFIX } from "../../../gateway/access/api-key.ts";
import { sha256 } from "../../../gateway/access/bearer-token.ts";
import { inputProblem } from "../../input-problem.ts";
import type { Terminal } from "../../terminal.ts";
import { keyName } from "../gateway/key-file.ts";

const KEY_BYTES = 32;

const allowance = z
  .preprocess((value) => (typeof value === "string" ? Number(value) : value), z.int().min(1))
  .optional();
const optionsSchema = z.strictObject({
  name: keyName,
  requestsPerMinute: allowance,
  tokensPerMinute: allowance,
  maxStreams: allowance,
});

/** `warmpath key`: makes an API key for clients of a gateway. */
export function keyCommand(terminal: Terminal): Command {
  return new Command("key")
    .description(
      "Make an API key for a client of the gateway. It is shown once; the gateway's file holds its hash alone.",
    )
    .requiredOption("--name <value>", "whom it is for, in metrics and cache salts")
    .option("--requests-per-minute <value>", "requests it may send in a minute")
    .option("--tokens-per-minute <value>", "tokens in a minute, of prompts and answers together")
    .option("--max-streams <value>", "requests it may have under way at once")
    .option("--json", "print key and entry as JSON")
    .helpOption("-h, --help", "print this help")
    .addHelpText(
      "after",
      [
        "",
        "Add the entry to the file that `warmpath gateway --api-keys FILE` names; a running gateway reads it within a second.",
        "To replace a key, add the new entry under the same name, and take the old one out when nobody uses it any more.",
        "",
        "Example:",
        "  $ warmpath key --name team-a --requests-per-minute 600 --tokens-per-minute 1000000",
      ].join("\n"),
    )
    .action((options: Record<string, unknown>) => makeKey(options, terminal));
}

function makeKey({ json, ...given }: Record<string, unknown>, terminal: Terminal): void {
  const { data, error } = optionsSchema.safeParse(given);
  if (error !== undefined) throw inputProblem(error, given, "see warmpath key --help");
  const { name, ...allowances } = data;
  const key = `${KEY_PREFIX}${randomBytes(KEY_BYTES).toString("base64url")}`;
  const entry: ApiKey = { name, sha256: sha256(key).toString("hex"), ...allowances };
  if (json === true) {
    terminal.print(JSON.stringify({ key, entry }));
    return;
  }
  terminal.print(`key for the client, shown this once:\n\n  ${key}\n\nentry for the file of --api-keys:\n`);
  terminal.print(stringify([entry]).trimEnd());
}
