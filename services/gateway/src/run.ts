import { runHttpService } from "relay-runtime/http/http-service.ts";
import { createGateway } from "./service.ts";
import { readGatewaySettings } from "./settings.ts";

await runHttpService(process, { name: "gateway", read: readGatewaySettings, create: createGateway });
