/** A thread that runs the cells of an experiment. Started by thread-pool.ts. */
import { workerData } from "node:worker_threads";
import { type JobSetting, runCellJob } from "./cell-job.ts";
import { serveJobs } from "./serve-jobs.ts";

serveJobs((index) => runCellJob(workerData as JobSetting, index));
