/**
 * Collects the packages that only some deployments need (events over ZMQ, planes over NATS) from the full installation, as
 * the lock file has them, without the binaries of other platforms: `node deploy/image/collect-optional.mjs FOLDER`.
 */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const target = process.argv[2];
if (target === undefined) {
  process.stderr.write("collect-optional: name the folder to fill\n");
  process.exit(2);
}

const { peerDependenciesMeta = {} } = manifest(".");
const wanted = Object.keys(peerDependenciesMeta).filter((name) => peerDependenciesMeta[name].optional);
const collected = new Set();
while (wanted.length > 0) {
  const name = wanted.pop();
  const source = join("node_modules", name);
  if (collected.has(name) || !existsSync(source)) continue;
  collected.add(name);
  cpSync(source, join(target, name), { recursive: true });
  wanted.push(...Object.keys(manifest(source).dependencies ?? {}));
}

// zeromq brings a binary for every system; this one runs Linux on one processor.
const builds = join(target, "zeromq", "build");
keepOnly(builds, ["manifest.json", process.platform]);
keepOnly(join(builds, process.platform), [process.arch]);
process.stdout.write(`collected ${[...collected].join(", ")}\n`);

function manifest(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function keepOnly(folder, names) {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (!names.includes(name)) rmSync(join(folder, name), { recursive: true });
}
