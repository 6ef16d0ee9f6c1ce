/** Waits until the process is asked to stop; asked a second time, it stops at once. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let isAsked = false;
    const ask = (): void => {
      if (isAsked) process.exit(1);
      isAsked = true;
      resolve();
    };
    process.on("SIGTERM", ask);
    process.on("SIGINT", ask);
  });
}
