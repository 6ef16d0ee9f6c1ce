import { Rng } from "../../core/rng.ts";
import { Engine } from "../engine/engine.ts";
import { SignalChannel } from "./signal-channel.ts";
import { SimWorker, type WorkerChannels } from "./sim-worker.ts";
import type { FleetDelays, FleetOptions, WorkerOptions } from "./types.ts";

/** Makes a worker and adds it to the router, which is told what an operator would tell it. */
export function createWorker(
  { name, engine: settings }: WorkerOptions,
  index: number,
  options: FleetOptions,
  delays: FleetDelays,
): SimWorker {
  const { router, feed, seed = 0 } = options;
  const { speculation, ...rest } = settings;
  const engine = new Engine({
    ...rest,
    // Drawn by request and not by worker, so that a request is as predictable wherever it goes.
    ...(speculation === undefined ? {} : { speculation: { ...speculation, seed: speculation.seed + seed } }),
    incarnation: `${name}-0`,
    kvEvents: feed !== undefined,
    coalesce: options.coalesce ?? true,
    growth: "block",
    tokenTimes: options.tokenTimes ?? true,
  });
  const { limits, profile } = settings;
  const spec = {
    worker: name,
    batchSlots: limits.maxSequences,
    kvBlocks: limits.poolBlocks - profile.reservedBlocks,
    stepTokens: limits.maxTokensPerStep,
  };
  const replica = router.addReplica(spec, feed);
  const historyDepth = delays.kvEvents.lossShare > 0 ? (feed?.replayDepth ?? 0) : 0;
  return new SimWorker(index, replica, name, engine, channelsOf(name, seed, delays), historyDepth);
}

function channelsOf(name: string, seed: number, delays: FleetDelays): WorkerChannels {
  const rng = new Rng(seed).stream("faults").stream(name);
  return {
    kvEvents: new SignalChannel(delays.kvEvents, rng.stream("kv-events")),
    firstToken: new SignalChannel(delays.firstToken, rng.stream("first-token")),
    growth: new SignalChannel(delays.growth, rng.stream("growth")),
    ended: new SignalChannel(delays.ended, rng.stream("ended")),
  };
}
