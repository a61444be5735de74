// Modules are evaluated in the order of their imports: on a Node that is too old the first one throws.
import "./node-version.js";

export * from "./lib/container.js";
