/**
 * The image without a container engine: runs the commands of every stage of the Dockerfile in clean folders, copies what it
 * copies, and looks at the last one. The base image itself and what its layers do are not part of this.
 */
import { spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stagesOf, valueOf } from "./dockerfile.mjs";
import { run, temporaryFolder } from "./tools.mjs";

const MOST_MEGABYTES = 60;
const RUN_MS = 600_000;
const START_MS = 60_000;
const USER = 1000;

export async function checkImage(folder) {
  const { args, stages } = stagesOf(readFileSync(join(folder, "Dockerfile"), "utf8"));
  const image = stages.at(-1);
  const problems = formProblems(args, stages, image);
  const place = temporaryFolder();
  chmodSync(place, 0o755);
  const context = { folder, place, allowed: allowedIn(folder) };
  for (const stage of stages) problems.push(...runStage(stage, context));
  if (problems.length > 0) return { problems, note: "" };
  const app = join(place, image.name, valueOf(image, "WORKDIR"));
  const megabytes = sizeOf(app) / 1e6;
  if (megabytes > MOST_MEGABYTES) problems.push(`${megabytes.toFixed(1)} MB are more than ${MOST_MEGABYTES}`);
  problems.push(...(await lifeProblems(image, app)));
  return {
    problems,
    note: `${megabytes.toFixed(1)} MB of ${MOST_MEGABYTES}, without Node; starts and answers as user ${USER}`,
  };
}

function formProblems(args, stages, image) {
  const problems = [];
  if (!args.includes("NODE_DIGEST")) problems.push("the base's digest must be a build argument without a default");
  for (const { name, base } of stages) {
    if (!base.endsWith("@${NODE_DIGEST}")) problems.push(`stage ${name} is not pinned to the digest`);
  }
  if (!/^[1-9]\d*:[1-9]\d*$/.test(valueOf(image, "USER") ?? ""))
    problems.push("the image's user must be a number above 0");
  for (const word of ["HEALTHCHECK", "ENTRYPOINT"]) {
    if (valueOf(image, word) === undefined) problems.push(`the image has no ${word}`);
  }
  return problems;
}

function runStage({ name, instructions }, { folder, place, allowed }) {
  const root = join(place, name);
  let workdir = root;
  for (const { word, rest } of instructions) {
    if (word === "WORKDIR") {
      workdir = join(root, rest);
      mkdirSync(workdir, { recursive: true });
    } else if (word === "COPY") {
      const [, from, paths] = /^(?:--from=(\S+) )?(.+)$/.exec(rest);
      const sources = paths.split(/\s+/);
      const target = sources.pop();
      for (const source of sources) {
        const origin = from === undefined ? folder : join(place, from);
        const problem = copy(
          origin,
          source,
          join(workdir, target),
          target.endsWith("/"),
          from === undefined ? allowed : undefined,
        );
        if (problem !== undefined) return [`stage ${name}: COPY ${rest}: ${problem}`];
      }
    } else if (word === "RUN") {
      // What this process was started with must not reach into the stage.
      const env = { NODE_ENV: "", npm_config_prefix: "", INIT_CWD: "", npm_execpath: "" };
      const { ok, output } = run("sh", ["-c", rest], { cwd: workdir, env, timeoutMs: RUN_MS });
      if (!ok) return [`stage ${name}: RUN ${rest}: ${output.trim().split("\n").slice(-5).join(" | ")}`];
    }
  }
  return [];
}

/** Copies as COPY does: a folder's content, a file under its name or a new one. */
function copy(origin, source, target, isFolder, allowed) {
  const path = join(origin, source);
  if (!existsSync(path)) return `${source} does not exist`;
  if (allowed !== undefined && !allowed.includes(source)) return `.dockerignore leaves ${source} out`;
  const into = !statSync(path).isDirectory() && isFolder ? join(target, basename(source)) : target;
  cpSync(path, into, { recursive: true, filter: (file) => allowed === undefined || !/\.test\.tsx?$/.test(file) });
  return undefined;
}

/** What .dockerignore lets through; ours lists it. */
function allowedIn(folder) {
  const lines = readFileSync(join(folder, ".dockerignore"), "utf8").split("\n");
  if (!lines.includes("*")) throw new Error(".dockerignore must leave everything out that it does not list");
  return lines.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
}

/** The program as the image starts it: another user, who may write nowhere. */
async function lifeProblems(image, app) {
  const port = await freePort();
  const env = { ...process.env, ...environmentOf(image), WARMPATH_PORT: String(port), WARMPATH_ADMIN_PORT: "0" };
  const user = process.getuid?.() === 0 ? { uid: USER, gid: USER } : {};
  const [program, ...words] = [...JSON.parse(valueOf(image, "ENTRYPOINT")), ...JSON.parse(valueOf(image, "CMD"))];
  const optional = run(program, ["-e", "import('zeromq').then(() => import('./dist/cli/program.js'))"], { cwd: app });
  if (!optional.ok) return [`events over ZMQ cannot be had: ${optional.output.trim()}`];
  const child = spawn(program, [...words, "--worker", "http://127.0.0.1:9"], {
    cwd: app,
    env,
    ...user,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const ended = new Promise((resolve) => child.once("close", resolve));
  const [, check] = /CMD (\[.*\])$/.exec(valueOf(image, "HEALTHCHECK"));
  const [checker, ...question] = JSON.parse(check);
  const deadlineMs = performance.now() + START_MS;
  let isWell = false;
  while (!isWell && child.exitCode === null && performance.now() < deadlineMs) {
    await pause(200);
    isWell = run(checker, question, { cwd: app, env }).ok;
  }
  child.kill("SIGTERM");
  const code = await ended;
  if (!isWell) return [`the gateway never passed its health check: ${said.trim()}`];
  return code === 0 ? [] : [`the gateway ended with ${code} after SIGTERM: ${said.trim()}`];
}

function environmentOf(image) {
  const written = image.instructions.filter(({ word }) => word === "ENV").flatMap(({ rest }) => rest.split(/\s+/));
  return Object.fromEntries(written.map((pair) => pair.split("=")));
}

function sizeOf(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

function freePort() {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
