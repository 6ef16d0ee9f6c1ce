/** Two gateways before one fleet of simulated workers, all processes of the built command line, and a balancer before both. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const NATS_SERVER = "nats-server";
const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

/** Starts a command that prints one line of JSON when it serves. */
async function started(words) {
  const child = spawn(process.execPath, [MAIN, ...words.map(String), "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${words[0]} ended with ${code}`);
  });
  ended.catch(() => {});
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
  return { ...JSON.parse(line), stop: () => stopped(child) };
}

async function stopped(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
}

/** Debian puts it where the PATH of ordinary users does not look. */
async function startNats() {
  const folder = await mkdtemp(join(tmpdir(), "warmpath-several-"));
  const port = 20_000 + (process.pid % 20_000);
  const child = spawn(NATS_SERVER, ["--addr", "127.0.0.1", "--port", port, "--store_dir", folder].map(String), {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ["ignore", "ignore", "pipe"],
  });
  for await (const line of createInterface(child.stderr)) if (line.includes("Server is ready")) break;
  child.stderr.resume();
  return {
    url: `nats://127.0.0.1:${port}`,
    stop: async () => {
      await stopped(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Sends requests to gateways in an order that has nothing to do with conversations, and passes answers back as they come. */
async function startBalancer(urls) {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  let state = 1;
  const server = createServer((incoming, outgoing) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const { method, headers, url } = incoming;
    const target = urls[Math.floor((state / 2 ** 32) * urls.length)];
    const passed = request(`${target}${url}`, { method, headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      agent.destroy();
    },
  };
}

/** Starts everything; `stop` ends it in the opposite order. */
export async function startLiveFleet({ workers, workerWords, gateways, policy, isSharing }) {
  const running = [];
  const keep = (one) => (running.push(one), one);
  try {
    const nats = keep(await startNats());
    const names = Array.from({ length: workers }, (_, at) => `worker-${at + 1}`);
    const fleet = await Promise.all(
      names.map((name) => started(["worker", "--port", 0, "--name", name, ...workerWords])),
    );
    fleet.forEach(keep);
    const named = fleet.flatMap(({ url }, at) => ["--worker", `${names[at]}=${url}`]);
    const shared = isSharing ? ["--peer-plane", nats.url] : [];
    const words = ["gateway", "--port", 0, "--admin-port", 0, "--policy", policy, ...named, ...shared];
    const fronts = await Promise.all(Array.from({ length: gateways }, () => started(words)));
    fronts.forEach(keep);
    const balancer = keep(await startBalancer(fronts.map(({ url }) => url)));
    return { url: balancer.url, adminUrls: fronts.map(({ adminUrl }) => adminUrl), stop: () => stopAll(running) };
  } catch (error) {
    await stopAll(running);
    throw error;
  }
}

async function stopAll(running) {
  for (const one of running.toReversed()) await one.stop();
}
