#!/usr/bin/env node
import { keepTicksFast } from "./fast-ticks.ts";
import { runCli } from "./program.ts";
import { processTerminal } from "./terminal.ts";

void keepTicksFast();
process.exitCode = await runCli(process.argv.slice(2), processTerminal());
