import "./node-version.js";

export * from "./lib/key-file.js";
