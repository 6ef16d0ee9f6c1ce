/** HTTPS of the gateway's own, with certificates that openssl makes for the test. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TLSSocket, connect } from "node:tls";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { requireProgram, type SkippableTest } from "../../support/required-component.ts";
import { startTestGateway } from "../../support/running-gateway.ts";
import { startProgram } from "./program-fleet.ts";
import { startRecordingEngine } from "./recording-engine.ts";

const run = promisify(execFile);
const opened: { close(): unknown }[] = [];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "warmpath-tls-"));
});

afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one.close();
  await rm(folder, { recursive: true, force: true });
});

/** A certificate of its own making, under the names that the gateway is told. */
async function makeCertificate(
  context: SkippableTest,
  commonName: string,
): Promise<{ tlsCert: string; tlsKey: string }> {
  const openssl = requireProgram(context, ["openssl"]);
  const [key, cert] = [join(folder, `${commonName}.key`), join(folder, `${commonName}.crt`)];
  const subject = ["-subj", `/CN=${commonName}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  await run(openssl, ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert]);
  const [tlsKey, tlsCert] = [join(folder, "tls.key"), join(folder, "tls.crt")];
  await rename(key, tlsKey);
  await rename(cert, tlsCert);
  return { tlsCert, tlsKey };
}

async function secureGet(url: string, ca: string): Promise<{ status: number | undefined; body: string }> {
  const asking = request(url, { ca, agent: false });
  asking.end();
  return await new Promise((resolve, reject) => {
    asking.on("error", reject);
    asking.on("response", (response) => {
      void text(response).then((body) => resolve({ status: response.statusCode, body }));
    });
  });
}

/** The name on the certificate that a server shows, or why there is none. */
async function shownName(url: string, options: object = {}): Promise<string> {
  const { hostname, port } = new URL(url);
  return await new Promise((resolve) => {
    const socket: TLSSocket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options });
    socket.on("secureConnect", () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(String(error.code)));
  });
}

test("the API is served over TLS 1.2 and newer, and a renewed certificate is shown without a restart", async (context) => {
  const engine = await startRecordingEngine();
  const tls = await makeCertificate(context, "first");
  const gateway = await startTestGateway({ worker: [`e=${engine.url}`], tokenizer: "word", ...tls });
  opened.push(engine, gateway);
  expect(gateway.url).toMatch(/^https:/);
  const ca = await readFile(tls.tlsCert, "utf8");
  expect(await secureGet(`${gateway.url}/v1/models`, ca)).toMatchObject({ status: 200 });
  await expect(fetch(gateway.url.replace("https:", "http:"))).rejects.toThrow("fetch failed");
  expect(await shownName(gateway.url, { maxVersion: "TLSv1.2" })).toBe("first");
  expect(await shownName(gateway.url, { minVersion: "TLSv1", maxVersion: "TLSv1.1" })).not.toBe("first");
  await makeCertificate(context, "second");
  await vi.waitFor(async () => expect(await shownName(gateway.url)).toBe("second"), { timeout: 15_000, interval: 200 });
});

test("several processes share the certificate", async (context) => {
  const { tlsCert, tlsKey } = await makeCertificate(context, "shared");
  const words = ["gateway", "--port", "0", "--admin-port", "0", "--processes", "2", "--tokenizer", "word"];
  const program = await startProgram([...words, "--tls-cert", tlsCert, "--tls-key", tlsKey]);
  opened.push({ close: () => program.stop("SIGTERM") });
  const ca = await readFile(tlsCert, "utf8");
  const answers = await Promise.all(Array.from({ length: 4 }, () => secureGet(`${program.url}/health`, ca)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

test("half an identity, or one that does not fit, is the user's to mend", async (context) => {
  const { tlsCert, tlsKey } = await makeCertificate(context, "fitting");
  await expect(startTestGateway({ tokenizer: "word", tlsCert })).rejects.toThrow(
    "--tls-cert and --tls-key need each other",
  );
  await expect(startTestGateway({ tokenizer: "word", tlsCert: tlsKey, tlsKey })).rejects.toThrow(
    "cannot be used together",
  );
});
