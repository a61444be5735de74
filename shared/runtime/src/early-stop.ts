/**
 * Imported first by each main.ts, and without imports of its own: a process that is told to stop while it still loads its
 * modules ends. As process 1 of a container it would otherwise ignore the signal. Once `runService` listens, it decides;
 * this listener stays, since with it a signal that is on its way would go.
 */
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => {
    if (process.listenerCount(signal) === 1) process.exit(0);
  });
}
