/** All workers of a local fleet in one process: two cores have no room for one each. Started by `local-fleet.ts`. */
import type { WorkersPlan } from "./fleet-plan.ts";
import { serveMember } from "./serve-member.ts";
import { serveWorkers } from "./serve-workers.ts";

serveMember(
  (plan) => serveWorkers(plan as WorkersPlan),
  ({ workers }) => workers,
);
