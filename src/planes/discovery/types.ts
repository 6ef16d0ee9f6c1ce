/**
 * The discovery plane's port: which workers there are. A plane tells what it finds and does not judge it; whether a worker
 * gets traffic is decided by those who listen.
 */

/** Where a worker's KV events are to be had. */
export interface WorkerEvents {
  /** `http://…` for our own workers, `tcp://…` for engines that publish over ZMQ. */
  readonly url: string;
  /** The ZMQ endpoint that sends events again. */
  readonly replayUrl?: string | undefined;
  readonly topic?: string | undefined;
}

/** A worker as it is found; what is absent is unknown. */
export interface DiscoveredWorker {
  /** Unique among all workers of a plane. */
  readonly name: string;
  /** Base of its OpenAI API. */
  readonly url: string;
  readonly model?: string | undefined;
  /** Data-parallel ranks behind the one URL; 1 if absent. */
  readonly dpRanks?: number | undefined;
  readonly batchSlots?: number | undefined;
  readonly kvBlocks?: number | undefined;
  readonly blockTokens?: number | undefined;
  readonly stepTokens?: number | undefined;
  /** Without it nothing is heard of its cache. */
  readonly events?: WorkerEvents | undefined;
}

/** Told of every change; a worker that has left may appear again. */
export interface DiscoveryListener {
  appeared(worker: DiscoveredWorker): void;
  /** The worker of this name is described differently now. */
  changed(worker: DiscoveredWorker): void;
  left(name: string): void;
  /** Something could not be read or asked; what was known before stays. */
  problem?(message: string): void;
}

export interface DiscoveryWatch {
  /** Looks again now; absent where changes are told as they happen. */
  look?(): Promise<void>;
  /** Nothing is told after this. */
  close(): Promise<void>;
}

/** Where workers are found. */
export interface DiscoveryPlane {
  /** Starts to tell, and resolves when the first look is over. */
  watch(listener: DiscoveryListener): Promise<DiscoveryWatch>;
}
