import "relay-runtime/early-stop.ts";

await import("./run.ts");
