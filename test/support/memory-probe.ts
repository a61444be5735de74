/**
 * Preloaded into a service whose memory is measured: at SIGUSR2 it frees what is garbage, and writes what the process
 * then holds as one more line of its log.
 */
process.on("SIGUSR2", () => {
  globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const sockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  process.stdout.write(
    `${JSON.stringify({ level: "info", msg: "held", held: { heapUsed, arrayBuffers, sockets } })}\n`,
  );
});
