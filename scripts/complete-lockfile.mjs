/**
 * npm leaves optional packages that it did not install out of a lockfile (npm/cli#4828), and then `npm ci` refuses the
 * lockfile everywhere. This adds the entries for the other platforms, which need only a version and the platform they are
 * for: `node scripts/complete-lockfile.mjs`, after a dependency was added. With `--check` it changes nothing and fails if
 * an entry is missing.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = fileURLToPath(new URL("../package-lock.json", import.meta.url));
const lockfile = JSON.parse(readFileSync(path, "utf8"));

const OPERATING_SYSTEMS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const PROCESSORS = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const missing = {};
for (const [parent, { optionalDependencies = {}, dev }] of Object.entries(lockfile.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (isLocked(parent, name)) continue;
    missing[`node_modules/${name}`] = { version, ...platformOf(name), ...(dev ? { dev } : {}), optional: true };
  }
}

const names = Object.keys(missing).map((key) => key.replace("node_modules/", ""));
if (names.length === 0) {
  process.stdout.write("package-lock.json is complete\n");
} else if (process.argv.includes("--check")) {
  process.stdout.write(`package-lock.json lacks ${names.join(", ")}; run node scripts/complete-lockfile.mjs\n`);
  process.exitCode = 1;
} else {
  const entries = Object.entries({ ...lockfile.packages, ...missing });
  lockfile.packages = Object.fromEntries(entries.sort(([left], [right]) => left.localeCompare(right, "en")));
  writeFileSync(path, `${JSON.stringify(lockfile, null, 2)}\n`);
  process.stdout.write(`added ${names.length} packages of other platforms to package-lock.json\n`);
}

/** True if the package is found from the parent's folder upwards, as Node would look for it. */
function isLocked(parent, name) {
  for (let folder = parent; ; folder = folder.replace(/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/, "")) {
    if (`${folder === "" ? "" : `${folder}/`}node_modules/${name}` in lockfile.packages) return true;
    if (folder === "") return false;
  }
}

/** What a package is for, by its name: `@scope/binding-linux-x64-musl`. */
function platformOf(name) {
  const words = name.split("/").at(-1).split("-");
  const os = words.find((word) => OPERATING_SYSTEMS.includes(word));
  const cpu = words.find((word) => PROCESSORS.includes(word));
  if (os === undefined && cpu === undefined) throw new Error(`${name} does not say which platform it is for`);
  const libc = { musl: "musl", musleabihf: "musl", gnu: "glibc", gnueabihf: "glibc" }[words.at(-1)];
  return {
    ...(cpu === undefined ? {} : { cpu: [cpu] }),
    ...(libc === undefined || os !== "linux" ? {} : { libc: [libc] }),
    ...(os === undefined ? {} : { os: [os] }),
  };
}
