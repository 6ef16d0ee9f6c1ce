/** A fleet on this machine, with load on it and Prometheus scraping it: the built programs, as people run them. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stringify } from "yaml";
import { prometheusProgram, repository, temporaryFolder } from "./tools.mjs";

const WORKERS = 2;
const START_MS = 60_000;

/** Starts everything and resolves when Prometheus answers; `close` ends it. */
export async function startLiveFleet() {
  const prometheus = prometheusProgram("prometheus");
  const place = temporaryFolder();
  const children = [];
  const start = (program, words) => {
    const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"] });
    child.said = "";
    child.stderr.on("data", (chunk) => (child.said += chunk));
    child.ended = new Promise((resolve) => child.once("close", resolve));
    children.push(child);
    return child;
  };
  const warmpath = (...words) => start(process.execPath, [join(repository, "dist", "cli", "main.js"), ...words]);
  const close = async () => {
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(children.map((child) => child.ended));
  };
  try {
    const [gatewayPort, adminPort, prometheusPort, ...workerPorts] = await freePorts(3 + WORKERS);
    for (const port of workerPorts) {
      const worker = warmpath("worker", "--name", `worker-${port}`, "--port", String(port), "--speed", "10");
      await answers(`http://127.0.0.1:${port}/health`, worker);
    }
    const found = workerPorts.flatMap((port) => ["--worker", `worker-${port}=http://127.0.0.1:${port}`]);
    const tokens = ["--tokenizer", "word", "--event-plane", "http"];
    const ports = ["--port", String(gatewayPort), "--admin-port", String(adminPort)];
    const gateway = warmpath("gateway", ...ports, ...found, ...tokens);
    const url = `http://127.0.0.1:${gatewayPort}`;
    await answers(`${url}/ready`, gateway);
    await refuseOnce(url, workerPorts);
    const load = ["--concurrency", "4", "--max-tokens", "40", "--think", "50-100", "--duration", "10m"];
    warmpath("load", "--url", url, ...load);
    const targets = [gatewayPort, ...workerPorts].map((port) => `127.0.0.1:${port}`);
    writeFileSync(
      join(place, "prometheus.yaml"),
      stringify({
        global: { scrape_interval: "1s", scrape_timeout: "1s" },
        scrape_configs: [{ job_name: "warmpath", static_configs: [{ targets }] }],
      }),
    );
    const scraping = start(prometheus, [
      `--config.file=${join(place, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(place, "data")}`,
      `--web.listen-address=127.0.0.1:${prometheusPort}`,
      "--log.level=error",
    ]);
    await answers(`http://127.0.0.1:${prometheusPort}/-/ready`, scraping);
    return { prometheusUrl: `http://127.0.0.1:${prometheusPort}`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** One request that no worker takes: retries and reasons exist only once there was cause for them. */
async function refuseOnce(url, workerPorts) {
  const faults = (refuse) =>
    Promise.all(
      workerPorts.map((port) =>
        fetch(`http://127.0.0.1:${port}/debug/faults`, { method: "POST", body: JSON.stringify({ refuse }) }),
      ),
    );
  await faults(503);
  const body = JSON.stringify({ model: "llama-3.1-8b", messages: [{ role: "user", content: "hello" }], max_tokens: 1 });
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
  await answer.text();
  await faults(null);
  if (answer.status !== 503) throw new Error(`workers that refuse were answered for with ${answer.status}`);
}

async function answers(url, child) {
  const deadlineMs = performance.now() + START_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`a program of the fleet ended: ${child.said.trim()}`);
    if (
      await fetch(url)
        .then(({ ok }) => ok)
        .catch(() => false)
    )
      return;
    if (performance.now() > deadlineMs) throw new Error(`${url} does not answer: ${child.said.trim()}`);
    await pause(100);
  }
}

async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
