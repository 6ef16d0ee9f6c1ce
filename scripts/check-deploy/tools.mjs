/** Programs and packages that checks need and the project itself does not: fetched once, kept outside the repository. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The cluster that manifests are for; the mission's. */
export const KUBERNETES_VERSION = "1.34.1";
const HELM_VERSION = "v3.19.5";
const KUBERNETES_VALIDATE_VERSION = "1.37.0";
/** Only their types are used. */
const TYPES = {
  "@grafana/schema": "13.2.3",
  "@kubernetes-models/gateway-api": "2.0.0",
  "@kubernetes-models/prometheus-operator": "6.0.0",
};
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "warmpath");
const INSTALL_MS = 1_200_000;

/** Something that a check needs cannot be had here. */
export class MissingTool extends Error {}

/** Runs a program and returns what it said; a program that is not there is a missing tool. */
export function run(program, options, { cwd, env = {}, input, timeoutMs = 120_000 } = {}) {
  const result = spawnSync(program, options, {
    cwd,
    input,
    encoding: "utf8",
    timeout: timeoutMs,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, ...env },
  });
  if (result.error?.code === "ENOENT") throw new MissingTool(`${program} is not installed`);
  const output = `${result.stdout ?? ""}${result.stderr ?? ""}`;
  return { ok: result.status === 0, stdout: result.stdout ?? "", output: result.error?.message ?? output };
}

/** Helm, as it is on the PATH or built from its Go module. */
export function helm() {
  const installed = onPath("helm");
  if (installed !== undefined) return installed;
  const folder = join(CACHE, `helm-${HELM_VERSION}`);
  return join(
    kept(folder, (into) => {
      const module = `helm.sh/helm/v3/cmd/helm@${HELM_VERSION}`;
      process.stderr.write(`check-deploy: building ${module}, once; this takes minutes\n`);
      const env = { GOBIN: into, GOFLAGS: "-buildvcs=false -modcacherw" };
      return run("go", ["install", module], { env, timeoutMs: INSTALL_MS });
    }),
    "helm",
  );
}

/** A program of Prometheus' package. */
export function prometheusProgram(name) {
  const path = onPath(name);
  if (path === undefined) throw new MissingTool(`${name} is not installed; Debian's package is prometheus`);
  return path;
}

/** Checks manifests of Kubernetes' own kinds against its published schemas, unknown fields included. */
export function kubernetesValidate(files) {
  const folder = kept(join(CACHE, `kubernetes-validate-${KUBERNETES_VALIDATE_VERSION}`), (into) => {
    const wanted = `kubernetes-validate==${KUBERNETES_VALIDATE_VERSION}`;
    return run("python3", ["-m", "pip", "install", "--quiet", "--target", into, wanted], { timeoutMs: INSTALL_MS });
  });
  const version = KUBERNETES_VERSION.split(".").slice(0, 2).join(".");
  const options = ["-m", "kubernetes_validate", "--strict", "--quiet", "-k", version, ...files];
  return run("python3", options, { env: { PYTHONPATH: folder } });
}

/** A folder whose node_modules has published types of Grafana's and operators' objects. */
export function publishedTypes() {
  const packages = Object.entries(TYPES).map(([name, version]) => `${name}@${version}`);
  const folder = join(CACHE, `types-${Object.values(TYPES).join("-")}`);
  return kept(folder, (into) => {
    writeFileSync(join(into, "package.json"), '{ "private": true }\n');
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--save-exact"];
    return run("npm", ["install", ...flags, ...packages], { cwd: into, timeoutMs: INSTALL_MS });
  });
}

/** A new folder that is removed when this process ends. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), "warmpath-deploy-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder of the cache, filled beside its place and moved there when it is complete. */
function kept(folder, fill) {
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}.`);
  const { ok, output } = fill(fresh);
  if (!ok) {
    rmSync(fresh, { recursive: true, force: true });
    throw new MissingTool(`${folder} could not be filled: ${output.trim().split("\n").at(-1)}`);
  }
  try {
    renameSync(fresh, folder);
  } catch (error) {
    // Another process was faster.
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

function onPath(name) {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}
