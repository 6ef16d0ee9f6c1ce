import { text } from "node:stream/consumers";
import pc from "picocolors";

/** What a command may touch of the outside world, so that commands can be run in tests without a process. */
export interface Terminal {
  readonly colours: Colours;
  readonly debug: boolean;
  /** What a command that ends well leaves as exit code; 0 unless it says otherwise. */
  exitCode?: number;
  print(line: string): void;
  printError(line: string): void;
  readStdin(): Promise<string>;
}

export type Colours = ReturnType<typeof pc.createColors>;

/** The terminal of this process: coloured only where a person looks at it and has not said otherwise. */
export function processTerminal(): Terminal {
  // A reader that has seen enough (`| head`) is not an error; anything else on these streams is.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(process.exitCode ?? 0);
      throw error;
    });
  }
  const noColour = process.env["NO_COLOR"] ?? "";
  return {
    colours: pc.createColors(process.stdout.isTTY ? noColour === "" : false),
    debug: process.env["WARMPATH_DEBUG"] === "1",
    print: (line) => void process.stdout.write(`${line}\n`),
    printError: (line) => void process.stderr.write(`${line}\n`),
    readStdin: () => text(process.stdin),
  };
}
