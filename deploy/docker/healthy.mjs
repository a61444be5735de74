// Whether the service of this container answers: exit code 0 or 1. Its certificate names the host of clients, not the loopback.
import http from "node:http";
import https from "node:https";

const { PORT, RELAY_TLS_CERT_FILE } = process.env;
const scheme = RELAY_TLS_CERT_FILE ? https : http;
const address = { host: "127.0.0.1", port: PORT, path: "/health", rejectUnauthorized: false };
scheme.get(address, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on("error", () => process.exit(1));
