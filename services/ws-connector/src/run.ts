import { runHttpService } from "relay-runtime/http/http-service.ts";
import { createWsConnector } from "./service.ts";
import { readWsConnectorSettings } from "./settings.ts";

await runHttpService(process, { name: "ws-connector", read: readWsConnectorSettings, create: createWsConnector });
