/** A thread that runs the jobs of a suite. Started by ../thread-pool.ts. */
import { workerData } from "node:worker_threads";
import { serveJobs } from "../serve-jobs.ts";
import { runSuiteJob, type SuiteJobSetting } from "./suite-job.ts";

serveJobs((index) => runSuiteJob(workerData as SuiteJobSetting, index));
