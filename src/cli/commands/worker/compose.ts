import { randomUUID } from "node:crypto";
import { WarmpathError } from "../../../core/errors.ts";
import { HttpEventPublisher } from "../../../planes/event/http-publisher.ts";
import type { EventPublisher } from "../../../planes/event/types.ts";
import { TensorRtEventPublisher } from "../../../planes/event/tensorrt-publisher.ts";
import { ZmqEventPublisher } from "../../../planes/event/zmq-publisher.ts";
import { readModelFiles } from "../../../planes/tokens/model/files.ts";
import { ModelTokenizer } from "../../../tokenizer/model-tokenizer.ts";
import type { PromptTokenizer } from "../../../tokenizer/types.ts";
import { WordTokenizer } from "../../../tokenizer/word-tokenizer.ts";
import { debugRoutes } from "../../../worker/debug-routes.ts";
import { type FaultChanges, FaultSwitches } from "../../../worker/faults.ts";
import { Instruments } from "../../../worker/metrics/instruments.ts";
import { SimulatedWorker } from "../../../worker/server.ts";
import { WallTimers } from "../../../worker/timers.ts";
import { TwinEngine, type TwinEngineOptions } from "../../../worker/twin-engine.ts";
import { type Announced, announcement, selfDescription } from "./announcement.ts";
import type { ZmqEventsConfig } from "./kv-events-option.ts";
import { natsPlanes } from "./nats-planes.ts";
import { type SimulatedEngine, simulatedEngine } from "./simulated-engine.ts";
import type { WorkerSettings } from "./settings.ts";

/** How often load is looked at and the GPUs are sampled. */
const LOOK_MS = 200;
const BYTES_PER_MEGABYTE = 1e6;
const LOOPBACK: readonly string[] = ["127.0.0.1", "::1", "localhost"];

export interface WorkerPlan {
  readonly settings: WorkerSettings;
  /** The engine itself, in place of the one that the settings describe. */
  readonly description?: SimulatedEngine;
  readonly faults?: FaultChanges;
  readonly zmq?: ZmqEventsConfig | undefined;
  /** What the fault of that name does. */
  readonly crash: () => void;
  /** Something that does not stop the worker. */
  readonly problem?: (message: string) => void;
}

/** A worker that serves. */
export interface RunningWorker {
  readonly name: string;
  readonly model: string;
  readonly url: string;
  /** Where it publishes over ZMQ, with the ports it got. */
  readonly zmq: { readonly endpoint: string; readonly replayEndpoint: string | undefined } | undefined;
  readonly description: SimulatedEngine;
  /** Lets answers under way finish for so long, ends the rest with an error, and closes everything. */
  readonly close: (drainSeconds: number) => Promise<void>;
  /** Ends the answers under way with an error, at once. */
  readonly abandon: () => void;
}

/** Puts a worker together from its flags, starts it, and announces it where that is asked for. */
export async function startWorker(plan: WorkerPlan): Promise<RunningWorker> {
  const { settings, crash, problem = (): void => {} } = plan;
  const description = plan.description ?? simulatedEngine(settings);
  const tokenizer = await tokenizerFrom(settings.tokenizer);
  const { limits } = description.engine;
  const { speed, host } = settings;
  const model = settings.servedModelName ?? settings.modelPath;
  const incarnation = randomUUID();
  const name = settings.name ?? `worker-${settings.port === 0 ? incarnation.slice(0, 8) : settings.port}`;
  // The engine's clock can be slowed down and stopped; requests are timed by one that cannot.
  const timers = new WallTimers(speed);
  const faults = new FaultSwitches({ setPace: (pace) => (timers.pace = pace), crash });
  const publishers: EventPublisher[] = [];
  const publish: TwinEngineOptions["publish"] = (event, content) => {
    for (const publisher of publishers) publisher.publish(event, content);
  };
  const isPublishing = settings.publishEventsAndMetrics;
  const engine = new TwinEngine({ ...description.engine, incarnation, timers, ...(isPublishing && { publish }) });
  const loses = (): boolean => faults.dropsEvent();
  const http = isPublishing ? new HttpEventPublisher({ source: engine, incarnation, loses }) : undefined;
  if (http !== undefined) publishers.push(http);
  const zmq = isPublishing ? await zmqPublisher(plan.zmq, limits.blockTokens, loses) : undefined;
  if (zmq !== undefined) publishers.push(zmq);
  const tensorRt = tensorRtPublisher(settings, limits.blockTokens, loses);
  if (tensorRt !== undefined) publishers.push(tensorRt);
  const nats = await natsPlanes(settings, { name, incarnation, source: engine, loses });
  if (nats.publisher !== undefined) publishers.push(nats.publisher);
  const instruments = new Instruments({
    worker: name,
    model,
    engine,
    limits,
    plan: description.plan,
    cacheDtype: description.kv,
    gpu: settings.gpu,
    gpus: settings.tensorParallelSize,
    report: (load) => {
      for (const publisher of publishers) publisher.load(load);
    },
  });
  const isDebugging = settings.debug ?? LOOPBACK.includes(host);
  const server = new SimulatedWorker({
    name,
    model,
    modelAliases: [settings.modelPath].filter((alias) => alias !== model),
    engine,
    tokenizer,
    clock: new WallTimers(speed),
    answerTokens: settings.answerTokens,
    maxSequenceTokens: settings.maxSeqLen,
    maxBodyBytes: settings.maxBodyMegabytes * BYTES_PER_MEGABYTE,
    ...(settings.maxQueueSize !== undefined && { maxRequests: limits.maxSequences + settings.maxQueueSize }),
    faults,
    meter: instruments.meter,
    routes: {
      ...instruments.routes,
      ...selfDescription(settings, () => announced),
      ...(isDebugging && debugRoutes(engine, faults, limits.blockTokens)),
    },
    mounts: [http, tensorRt].filter((mount) => mount !== undefined),
  });
  const url = await bound(`port ${settings.port}`, server.listen(settings.port, host));
  await nats.serve(url);
  const looking = setInterval(() => instruments.look(timers.nowNs()), LOOK_MS);
  if (plan.faults !== undefined) faults.turn(plan.faults);
  const announced: Announced = { name, model, url, limits, kvBlocks: engine.load.poolBlocks, zmq };
  const registration = announcement(settings, announced, problem);
  await registration?.start();
  return {
    name,
    model,
    url,
    zmq,
    description,
    abandon: () => server.abandon("the worker was told to stop at once"),
    close: async (drainSeconds) => {
      // First of all, so that nobody sends more while the rest is finished.
      await registration?.close();
      await nats.stop();
      await drained(server, drainSeconds);
      clearInterval(looking);
      await Promise.all(publishers.map((publisher) => publisher.close()));
      await nats.close();
      await server.kill();
      engine.close();
    },
  };
}

async function tokenizerFrom(written: string): Promise<PromptTokenizer> {
  return written === "word" ? new WordTokenizer() : new ModelTokenizer(await readModelFiles(written));
}

function tensorRtPublisher(
  { publishEventsAndMetrics, eventBufferMaxSize: bufferEvents }: WorkerSettings,
  blockTokens: number,
  loses: () => boolean,
): TensorRtEventPublisher | undefined {
  if (!publishEventsAndMetrics || bufferEvents === 0) return undefined;
  return new TensorRtEventPublisher({ blockTokens, bufferEvents, loses });
}

async function zmqPublisher(
  config: ZmqEventsConfig | undefined,
  blockTokens: number,
  loses: () => boolean,
): Promise<ZmqEventPublisher | undefined> {
  if (config === undefined) return undefined;
  return await bound(
    config.replayEndpoint === undefined ? config.endpoint : `${config.endpoint} or ${config.replayEndpoint}`,
    ZmqEventPublisher.load({ ...config, blockTokens, loses }),
  );
}

/** Turns an address that cannot be had into a complaint about the flag that names it. */
async function bound<T>(where: string, binding: Promise<T>): Promise<T> {
  try {
    return await binding;
  } catch (error) {
    if (WarmpathError.isInstance(error)) throw error;
    throw new WarmpathError("WP_INVALID_INPUT", `cannot listen on ${where}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Waits for the answers under way, but not for ever. */
async function drained(server: SimulatedWorker, drainSeconds: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<"over">((resolve) => {
    timer = setTimeout(() => resolve("over"), drainSeconds * 1000);
  });
  const done = server.drain();
  if ((await Promise.race([done, patience])) === "over") {
    server.abandon(`the worker shut down before the answer was whole, after waiting for ${drainSeconds} s`);
    await done;
  }
  clearTimeout(timer);
}
