/** A process of the demo: one command line of ours, which ends when whoever started it does. Started by `demo-process.ts`. */
import { runCli } from "../../program.ts";
import { processTerminal } from "../../terminal.ts";

process.on("disconnect", () => process.exit(0));
process.exit(await runCli(process.argv.slice(2), processTerminal()));
