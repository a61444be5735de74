/**
 * Preloaded into a service that is under attack (`--import`): at SIGUSR2 it writes what the process still holds, after a
 * full collection, as one more line of its log.
 */
process.on("SIGUSR2", () => {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const sockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  process.stdout.write(`${JSON.stringify({ level: 30, msg: "stock", heldBytes: heapUsed + arrayBuffers, sockets })}\n`);
});
