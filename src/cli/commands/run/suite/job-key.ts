import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Everything that a result depends on: what decides, what is simulated, and how it is scored. */
const JUDGING_CODE = [
  "core",
  "measure",
  "sim",
  "workload",
  "lab/experiment",
  "lab/suite/plan",
  "lab/suite/run-sample",
  "lab/suite/score",
  "lab/suite/windowed-source",
  "cli/commands/run/simulated-fleet",
  "cli/commands/run/suite/saturation",
  "cli/commands/run/suite/simulate-arm",
];

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** Names results by what they follow from: equal keys, equal results. */
export class JobKeys {
  readonly #files: readonly CodeFile[];
  readonly #policies: readonly string[];
  readonly #codeOf = new Map<string, string>();

  /** Code of a policy of this name is part of no other policy's results. */
  constructor(ownCode: readonly string[]) {
    this.#policies = ownCode;
    const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" });
    this.#files = files
      .filter((path) => JUDGING_CODE.some((part) => path.startsWith(`${part}/`) || path.startsWith(`${part}.`)))
      .filter((path) => /\.(js|ts)$/.test(path) && !/\.(test|d)\.ts$/.test(path))
      .sort()
      .map((path) => {
        const content = readFileSync(join(ROOT, path), "utf8");
        return { path, hash: sha256(content), imports: importsOf(content) };
      });
  }

  /** The key of a result that a policy and this setting lead to. */
  key(policy: string, setting: object): string {
    return sha256(`${this.#code(policy)} ${JSON.stringify(setting)}`).slice(0, 24);
  }

  #code(policy: string): string {
    const known = this.#codeOf.get(policy);
    if (known !== undefined) return known;
    const others = this.#policies.filter((name) => name !== policy && !this.#isUsedByOthers(name));
    const kept = this.#files.filter(({ path }) => !others.some((name) => isCodeOf(name, path)));
    const code = sha256(kept.map(({ path, hash }) => `${path} ${hash}`).join("\n"));
    this.#codeOf.set(policy, code);
    return code;
  }

  /** Whether any code but the registry, which names all policies, imports a policy's own. */
  #isUsedByOthers(policy: string): boolean {
    const own = this.#files.filter(({ path }) => isCodeOf(policy, path)).map(({ path }) => moduleName(path));
    return this.#files.some(
      ({ path, imports }) =>
        !isCodeOf(policy, path) && moduleName(path) !== "registry" && imports.some((name) => own.includes(name)),
    );
  }
}

/** Whether a file is a policy's own: beside the others, and called like it. */
function isCodeOf(policy: string, path: string): boolean {
  return relative("core/policy", path) === basename(path) && basename(path).startsWith(policy);
}

interface CodeFile {
  readonly path: string;
  readonly hash: string;
  /** Names of the modules it imports, without their folders. */
  readonly imports: readonly string[];
}

function importsOf(content: string): string[] {
  return [...content.matchAll(/ from "(\.[^"]+)"/g)].map(([, path]) => moduleName(path));
}

function moduleName(path: string): string {
  return basename(path).replace(/\.(js|ts)$/, "");
}

function sha256(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}
