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
  /** The paths of each policy's own code. */
  readonly #ownCode: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #codeOf = new Map<string, string>();

  /** Code of a policy of this name is part of no other policy's results. */
  constructor(policies: readonly string[], files: readonly CodeFile[] = judgingCode()) {
    this.#files = files;
    this.#ownCode = new Map(policies.map((policy) => [policy, ownCodeOf(policy, files)]));
  }

  /** The key of a result that a policy and this setting lead to. */
  key(policy: string, setting: object): string {
    return sha256(`${this.#code(policy)} ${JSON.stringify(setting)}`).slice(0, 24);
  }

  #code(policy: string): string {
    const known = this.#codeOf.get(policy);
    if (known !== undefined) return known;
    const others = [...this.#ownCode].filter(([name]) => name !== policy).map(([, paths]) => paths);
    const kept = this.#files.filter(({ path }) => !others.some((paths) => paths.has(path)));
    const code = sha256(kept.map(({ path, content }) => `${path} ${sha256(content)}`).join("\n"));
    this.#codeOf.set(policy, code);
    return code;
  }
}

interface CodeFile {
  readonly path: string;
  readonly content: string;
}

function judgingCode(): CodeFile[] {
  return readdirSync(ROOT, { recursive: true, encoding: "utf8" })
    .filter((path) => JUDGING_CODE.some((part) => path.startsWith(`${part}/`) || path.startsWith(`${part}.`)))
    .filter((path) => /\.(js|ts)$/.test(path) && !/\.(test|d)\.ts$/.test(path))
    .sort()
    .map((path) => ({ path, content: readFileSync(join(ROOT, path), "utf8") }));
}

/**
 * The files that only one policy uses: those called like it, and those beside it that nobody imports but its own. None if others import
 * the former; the registry, which names all policies, does not count.
 */
function ownCodeOf(policy: string, files: readonly CodeFile[]): Set<string> {
  const importersOf = new Map<string, string[]>();
  for (const { path, content } of files) {
    if (moduleName(path) === "registry") continue;
    for (const name of importsOf(content)) importersOf.set(name, [...(importersOf.get(name) ?? []), path]);
  }
  const importers = (path: string): string[] => importersOf.get(moduleName(path)) ?? [];
  const beside = files.map(({ path }) => path).filter((path) => relative("core/policy", path) === basename(path));
  const own = new Set(beside.filter((path) => basename(path).startsWith(policy)));
  if ([...own].some((path) => importers(path).some((importer) => !own.has(importer)))) return new Set();
  for (let before = -1; before !== own.size;) {
    before = own.size;
    for (const path of beside) {
      const used = importers(path);
      if (used.length > 0 && used.every((importer) => own.has(importer))) own.add(path);
    }
  }
  return own;
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
